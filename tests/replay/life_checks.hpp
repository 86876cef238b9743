// What a life's numbers are held against: an uninterrupted resident run, bit for bit.
#pragma once

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "replay/checkpoint/checkpoint.hpp"
#include "tests/catch.hpp"
#include "tests/replay/life_cases.hpp"

namespace ebb::test {

using namespace ebb::replay;

inline bool same_steps(const std::vector<StepNumbers>& a, const std::vector<StepNumbers>& b) {
  // A skipped step's norm is nan or inf: nan is not equal to itself.
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    StepNumbers left = a[i], right = b[i];
    if (left.skipped && right.skipped) left.sum_of_squares = right.sum_of_squares = 0;
    if (!(left == right)) return false;
  }
  return true;
}

/// The last steps of `whole` are all of `tail`, and both end in the same state.
inline void check_tail(const std::vector<LifeNumbers>& whole, const std::vector<LifeNumbers>& tail) {
  REQUIRE(whole.size() == tail.size());
  for (std::size_t r = 0; r < whole.size(); ++r) {
    const std::size_t count = tail[r].steps.size();
    REQUIRE(whole[r].steps.size() >= count);
    const std::vector<StepNumbers> last(whole[r].steps.end() - static_cast<std::ptrdiff_t>(count),
                                        whole[r].steps.end());
    CHECK(same_steps(last, tail[r].steps));
    CHECK(whole[r].final_state == tail[r].final_state);
    CHECK(whole[r].parameters == tail[r].parameters);
    CHECK(whole[r].place == tail[r].place);
  }
}

inline void check_sound(const std::vector<LifeNumbers>& ranks) {
  for (const LifeNumbers& rank : ranks) {
    CHECK(rank.strays == 0);
    for (const PartPeak& peak : rank.peaks) {
      INFO(name_of(peak.part));
      CHECK(peak.live == peak.planned);
    }
  }
}

inline std::array<std::uint64_t, 4> contents(const std::string& path) {
  const checkpoint::Reader reader(path);
  return {reader.content(kExpAvg), reader.content(kExpAvgSq), reader.content(kMaster), reader.content(kParams)};
}

inline std::vector<LifeNumbers> live(const Life& life, const TrainingOptions& training, std::vector<LifeEvent> events,
                                     const ReferenceOptions& order = {}) {
  return reference_life(life.ranks, {.training = training, .events = std::move(events)}, order.held_back,
                        order.most_on);
}

/// Twenty steps, the seventh of which is skipped because of the last rank, saved after twelve; every policy dies after
/// thirteen and is resumed.
inline void check_interrupted(const LifeJob& what, int gpus) {
  TrainingOptions training = what.training;
  training.injections = {{.step = 7, .rank = gpus - 1, .value = std::numeric_limits<float>::infinity()}};
  const TemporaryDirectory kept("life-base");
  const Life resident = life_of(what.job, {.policy = Policy::resident});
  const std::vector<LifeNumbers> whole = live(resident, training, {init(), steps(12), save(kept.path()), steps(8)});
  check_sound(whole);
  for (std::size_t i = 0; i < 20; ++i) CHECK(whole[0].steps[i].skipped == (i == 6));
  CHECK(whole[0].place.steps == 20);
  CHECK(whole[0].place.adam_steps == 19);
  const auto saved = contents(kept.path());

  for (const Candidate& candidate : life_candidates(owned_by_first(what.job))) {
    INFO(gpus << " ranks, " << what.name << ", " << text_of(candidate));
    const TemporaryDirectory directory("life");
    const Life life = life_of(what.job, candidate);
    // Dies after a step more: whatever was in memory is gone.
    const auto first = live(life, training, {init(), steps(12), save(directory.path()), steps(1)});
    check_sound(first);
    CHECK(contents(directory.path()) == saved);
    for (std::size_t r = 0; r < first.size(); ++r)
      CHECK(same_steps(first[r].steps, {whole[r].steps.begin(), whole[r].steps.begin() + 13}));
    const auto resumed = live(life, training, {init(), load(directory.path()), steps(8)});
    check_sound(resumed);
    check_tail(whole, resumed);
  }
}

}  // namespace ebb::test
