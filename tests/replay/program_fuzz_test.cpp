// A plan file comes from outside. Whatever is in it: an InputError, or a program whose every place is inside its buffer
// and whose numerics run.
#include <nlohmann/json.hpp>
#include <random>

#include "models/errors.hpp"
#include "models/json_fields.hpp"
#include "models/plan_json.hpp"
#include "replay/reference.hpp"
#include "tests/catch.hpp"
#include "tests/replay/replay_cases.hpp"

using namespace ebb;
using namespace ebb::replay;
using namespace ebb::test;

namespace {

/// A random value or list somewhere below `json`.
Json& anywhere(Json& json, std::mt19937& random) {
  Json* at = &json;
  while (at->is_structured() && !at->empty()) {
    auto child = at->begin();
    std::advance(child, random() % at->size());
    at = &*child;
    if (random() % 16 == 0) break;
  }
  return *at;
}

void mutate(Json& json, std::mt19937& random) {
  Json& value = anywhere(json, random);
  if (value.is_number_integer()) {
    const auto before = value.get<std::int64_t>();
    const std::int64_t near[] = {
        before + 1, before - 1, 2 * before, before / 2, 0, 1, std::int64_t{1} << (random() % 62), 7, before + 256};
    value = near[random() % std::size(near)];
  } else if (value.is_string()) {
    const Json other = anywhere(json, random);
    if (other.is_string()) value = other;
  } else if (value.is_boolean()) {
    value = !value.get<bool>();
  } else if (value.is_array() && !value.empty()) {
    if (random() % 2 == 0)
      value.erase(random() % value.size());
    else
      std::swap(value[random() % value.size()], value[random() % value.size()]);
  } else if (value.is_object() && !value.empty()) {
    auto child = value.begin();
    std::advance(child, random() % value.size());
    value.erase(child);
  }
}

bool small(const Program& program) {
  std::int64_t bytes = program.pinned.value + program.pageable.value;
  for (const Buffer& buffer : program.plan->buffers)
    if (buffer.role != Role::other) bytes += buffer.bytes.value;
  return bytes < (32_MiB).value && program.plan->ops.size() < 500;
}

}  // namespace

TEST_CASE("Mutated plan files compile to places inside their buffers, or are refused") {
  std::mt19937 random(20261130);
  Job job = tiny_job();
  job.model.layers = 1;
  job.model.vocab = 64;
  int compiled = 0;
  int refused_by_compile = 0;
  int ran = 0;
  for (const Candidate& candidate : replay_candidates(10000)) {
    const Json good = parse_json(to_json(host_plans(job, candidate).plans), "plan.json");
    for (int i = 0; i < 400; ++i) {
      Json bad = good;
      for (std::uint64_t times = 1 + random() % 3; times-- > 0;) mutate(bad["ranks"], random);
      std::vector<Plan> plans;
      try {
        plans = plans_from_json(dump(bad), "plan.json");
      } catch (const InputError&) {
        continue;
      }
      try {
        const std::vector<Program> programs = compile_all(plans);
        ++compiled;
        for (const Program& program : programs) CHECK(every_place_is_inside(program));
        if (programs.size() == 1 && small(programs.front())) {
          reference(programs, {.steps = 2, .held_back = StreamKind::compute});
          ++ran;
        }
      } catch (const InputError& error) {
        ++refused_by_compile;
        CHECK_THAT(error.what(), Catch::Contains("rank") || Catch::Contains("deadlock"));
      }
    }
  }
  CHECK(compiled > 500);
  CHECK(refused_by_compile > 500);
  CHECK(ran > 400);
}
