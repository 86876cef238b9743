// The comparison of lives finds what it is there for: a wrong bit in any number of any step, leg or rank, another
// place, another checkpoint, a step that was not skipped. Records are made by hand: nothing is executed.
#include "replay/life_compare.hpp"

#include <functional>
#include <limits>

#include "replay/life_equivalence.hpp"
#include "tests/catch.hpp"

using namespace ebb;
using namespace ebb::replay;

namespace {

const LifeSetting kSetting{{.adam = {}}, "/d", 1, 0};

/// Numbers that depend on leg, training step and rank alone, as those of equal lives do.
LifeRecord record(const std::vector<Leg>& legs, const LifeShape& shape) {
  LifeRecord life;
  for (const Leg& leg : legs) {
    const int base = leg.kind == LegKind::fresh ? 1000 : leg.other_ranks() ? 100 : 0;
    LegRecord of_leg{leg.kind,
                     leg.taken,
                     leg.other_ranks() ? std::vector<std::int64_t>{0} : std::vector<std::int64_t>{0, 1},
                     {},
                     {}};
    for (const std::int64_t rank : of_leg.ranks) {
      LifeNumbers numbers;
      for (const int step : leg.taken) {
        const bool skipped = base == 0 && std::find(shape.skips.begin(), shape.skips.end(), step) != shape.skips.end();
        StepNumbers one;
        one.loss = base + step + 0.5 * static_cast<double>(rank);
        one.sum_of_squares = skipped ? shape.skip_value : static_cast<float>(base + step);
        one.digest = skipped ? 0 : static_cast<std::uint64_t>(base + step) * 31 + static_cast<std::uint64_t>(rank);
        one.skipped = skipped;
        numbers.steps.push_back(one);
      }
      numbers.final_state = static_cast<std::uint64_t>(base + leg.taken.back());
      numbers.parameters = numbers.final_state + 5;
      numbers.place.steps = leg.taken.back();
      of_leg.numbers.push_back(numbers);
    }
    life.push_back(of_leg);
  }
  life.front().saved.push_back({6, {1, 2, 3, 4}});
  return life;
}

struct Pair {
  LifeShape shape = standard_life(20);
  LifeRecord baseline = record(uninterrupted_life(shape, kSetting), shape);
  LifeRecord life = record(interrupted_life(shape, kSetting), shape);
};

}  // namespace

TEST_CASE("A life with the baseline's numbers has no difference, with inf or nan as the spoiled norm") {
  CHECK(difference(Pair().baseline, Pair().life).empty());
  LifeShape shape = standard_life(20);
  shape.skip_value = std::numeric_limits<float>::quiet_NaN();
  CHECK(difference(record(uninterrupted_life(shape, kSetting), shape), record(interrupted_life(shape, kSetting), shape))
            .empty());
}

TEST_CASE("One wrong number, in whichever leg, step and rank, is found and named") {
  const auto found = [](const std::function<void(LifeRecord&)>& change) {
    Pair pair;
    change(pair.life);
    return difference(pair.baseline, pair.life);
  };
  // Leg 0 takes steps 7 and 8 twice: entries 8 and 9 are those after the reload.
  CHECK(found([](LifeRecord& life) { life[0].numbers[1].steps[9].digest ^= 1; }) ==
        "from init, rank 1, step 8: state digest 00000000000000f8 instead of 00000000000000f9");
  CHECK(found([](LifeRecord& life) {
          life[1].numbers[0].steps[0].loss += 1e-12;
        }).find("resumed, rank 0, step 7: loss") == 0);
  CHECK(found([](LifeRecord& life) {
          life[2].numbers[0].steps[6].sum_of_squares = 0;
        }).find("resharded, rank 0, step 20: squared") == 0);
  CHECK(found([](LifeRecord& life) {
          life[3].numbers[1].steps[1].digest = 0;
        }).find("from parameters, rank 1, step 2") == 0);
  CHECK(found([](LifeRecord& life) { life[0].numbers[0].steps[2].skipped = false; }) ==
        "from init, rank 0, step 3: not skipped");
  CHECK(found([](LifeRecord& life) { life[0].numbers[0].steps[3].loss_scale = 2; }).find("loss scale 2 instead of 1") !=
        std::string::npos);
  CHECK(found([](LifeRecord& life) { life[1].numbers[1].steps.pop_back(); }) ==
        "resumed, rank 1: 6 steps instead of 7");
  CHECK(found([](LifeRecord& life) { life[2].numbers[0].strays = 2; }).find("2 accesses to memory") !=
        std::string::npos);
  CHECK(found([](LifeRecord& life) {
          life[1].numbers[0].final_state ^= 1;
        }).find("resumed, rank 0, at its end: final state") == 0);
  CHECK(found([](LifeRecord& life) {
          life[2].numbers[0].parameters ^= 1;
        }).find("resharded, rank 0, at its end: parameters") == 0);
  CHECK(found([](LifeRecord& life) { life[1].numbers[0].place.adam_steps = 9; }).find("(9 of Adam)") !=
        std::string::npos);
  CHECK(found([](LifeRecord& life) { life[1].numbers.pop_back(); }).find("numbers of 1 ranks instead of 2") !=
        std::string::npos);
}

TEST_CASE("Checkpoints of one step have one content, whoever wrote them") {
  Pair pair;
  LifeRecord other = pair.life;
  CHECK(content_difference(pair.life, other).empty());
  other[0].saved[0].content[2] ^= 1;
  CHECK(content_difference(pair.life, other) ==
        "the checkpoint of step 6 (from init): master has the content 0000000000000002 instead of 0000000000000003");
  // Saved anew after a resharded load, within one life.
  pair.life[2].saved.push_back({6, {1, 2, 3, 5}});
  CHECK(content_difference(pair.life, {}).find("(resharded): param") != std::string::npos);
  // Another step is another state.
  pair.life[2].saved[0].step = 7;
  CHECK(content_difference(pair.life, {}).empty());
}

TEST_CASE("A life whose spoiled step was not skipped, or that skipped others, proves nothing") {
  Pair pair;
  CHECK(skip_difference(pair.baseline, pair.shape, false).empty());
  pair.baseline[0].numbers[0].steps[4].skipped = true;
  CHECK(skip_difference(pair.baseline, pair.shape, false).find("step 5: skipped, though") != std::string::npos);
  CHECK(skip_difference(pair.baseline, pair.shape, true).empty());  // the loss scale's own
  pair.baseline[0].numbers[1].steps[2].skipped = false;
  CHECK(skip_difference(pair.baseline, pair.shape, true).find("rank 1, step 3: not skipped") != std::string::npos);
}
