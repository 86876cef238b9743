// A life's file comes from outside. Whatever number of it changes and whatever key goes: an InputError, or lives that
// run to their end and are compared; never an assertion. A sample of all numbers and keys, the same in every run.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/errors.hpp"
#include "models/json_fields.hpp"
#include "models/plan_json.hpp"
#include "tests/catch.hpp"
#include "tests/replay/life_cases.hpp"
#include "tests/replay/life_pairs.hpp"

using namespace ebb;
using namespace ebb::replay;
using namespace ebb::test;

namespace {

/// Every number below `json`, and every object's keys.
struct Places {
  std::vector<Json*> numbers;
  std::vector<std::pair<Json*, std::string>> keys;

  void add(Json& json) {
    if (json.is_number_integer()) numbers.push_back(&json);
    if (json.is_object())
      for (auto& [key, value] : json.items()) keys.emplace_back(&json, key);
    for (Json& child : json)
      if (json.is_structured()) add(child);
  }
};

std::vector<std::int64_t> others(std::int64_t x) {
  return {0, -1, x + 1, x / 2, std::int64_t{1} << 40, std::int64_t{1} << 62};
}

struct FuzzedLife {
  const char* name;
  Job job;
  Candidate candidate;
};

std::vector<FuzzedLife> fuzzed_lives() {
  const Job plain = smallest_life_job(1);
  Job blocks = smallest_life_job(2);
  blocks.precision.fp8 = Fp8Recipe::blockwise;
  blocks.precision.fp8_param_gather = true;
  const Candidate chunked{.policy = Policy::chunked, .chunk_numel = {1500}};
  const Candidate pipelined{.policy = Policy::pipelined, .chunk_numel = {901}, .slots = 3};
  return {{"chunked", plain, chunked},
          {"pipelined", plain, pipelined},
          {"windowed", plain, {.policy = Policy::windowed}},
          {"FP8 in blocks, two ranks", blocks, chunked}};
}

enum class Came { refused, compared };

/// What `ebb-replay equivalence resident.json policy.json --life` does.
Came compare(const LifeFile& resident, const Json& policy, const std::string& directory) {
  try {
    const LifeFile file = life_of(plans_from_json(dump(policy), "policy.json"), "policy.json");
    const LifePlans plans{file.ranks, {}};
    LifeComparison comparison;
    comparison.shape = standard_life(kShortLife);
    comparison.shape.reshard = false;
    comparison.disturbed = comparison.shape;
    comparison.directory = directory;
    LifeExecutor executor = cpu_executor(plans);
    executor.disturbed.clear();
    compare_lives({resident.ranks, {}}, plans, comparison, executor);
    return Came::compared;
  } catch (const InputError& error) {
    CHECK(std::string(error.what()).size() > 10);
    return Came::refused;
  }
}

}  // namespace

TEST_CASE("A life's file with one number changed or one key gone is refused, or runs to its end") {
  constexpr std::size_t kSampled = 120;  // of a life's numbers, each with one of its other values; and of its keys half
  int refused = 0, compared = 0;
  for (const FuzzedLife& life : fuzzed_lives()) {
    const TemporaryDirectory directory("fuzz");
    const int gpus = static_cast<int>(life.job.parallel.gpus);
    const LifeFile resident = life_of(life_plans(life.job, {.policy = Policy::resident}, gpus), "resident.json");
    Json document = parse_json(to_json(life_plans(life.job, life.candidate, gpus)), "policy.json");
    REQUIRE(compare(resident, document, directory.path()) == Came::compared);
    Places places;
    places.add(document["ranks"]);
    const auto count = [&](Came came) { ++(came == Came::refused ? refused : compared); };
    for (std::size_t i = 0; i < kSampled; ++i) {
      Json& number = *places.numbers[(i * 7919 + 13) % places.numbers.size()];
      const auto before = number.get<std::int64_t>();
      const std::vector<std::int64_t> values = others(before);
      number = values[i % values.size()];
      INFO(life.name << ", number " << i << ": " << before << " becomes " << number.get<std::int64_t>());
      count(compare(resident, document, directory.path()));
      number = before;
    }
    for (std::size_t i = 0; i < kSampled / 2; ++i) {
      // A copy: erasing moves its neighbours.
      Json bad = document;
      Places of_bad;
      of_bad.add(bad["ranks"]);
      const auto& [object, key] = of_bad.keys[(i * 6007 + 29) % of_bad.keys.size()];
      INFO(life.name << ", without key " << key);
      object->erase(key);
      count(compare(resident, bad, directory.path()));
    }
  }
  CHECK(refused > compared);
  CHECK(compared > 20);
}
