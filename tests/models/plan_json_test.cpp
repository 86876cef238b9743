// Plans survive JSON bit for bit, the same plan is always the same bytes, and a damaged document is
// refused with the path of what is wrong.
#include "models/plan_json.hpp"

#include <random>

#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"
#include "tests/models/mutate.hpp"

using namespace ebb;

namespace {

/// A plan that uses every field: one chunk in, Adam, out.
Plan small_plan() {
  Plan plan;
  plan.job = "a \"job\"";
  plan.candidate = {
      .policy = Policy::pipelined, .chunk_numel = {1000}, .chunk_size_mb = 0, .fraction = 0.1, .slots = 2};
  plan.rank = 7;
  plan.shards = {{"decoder.layers.0.mlp.linear_fc1.weight", {600}, {424}}, {"output_layer.weight", {400}, {0}}};
  plan.streams = {{"host", StreamKind::host}, {"h2d", StreamKind::h2d}, {"compute", StreamKind::compute}};
  plan.precision.exp_avg = Dtype::bf16;
  plan.precision.remainders = false;
  plan.precision.fp8 = Fp8Recipe::blockwise;
  plan.buckets = {{{0}, {512}, false}, {{512}, {1024}, true}};
  plan.buffers = {{"slot 0", Memory::device, {12000}, false, Phase::step, Role::state, kAllState, {0, 1000}, {}, true},
                  {"state", Memory::pinned, {12000}, true}};
  plan.deps = {{0}, {1}, {0}, {2}};
  plan.ops.push_back({.kind = OpKind::allocate, .phase = Phase::step, .stream = {0}, .buffer = {0}});
  plan.ops.push_back({.kind = OpKind::copy_h2d,
                      .phase = Phase::step,
                      .states = kAllState,
                      .stream = {1},
                      .chunk = 0,
                      .calls = 6,
                      .deps_begin = 0,
                      .deps_count = 1,
                      .buffer = {0},
                      .bytes = {12000},
                      .range = {0, 1000}});
  plan.ops.push_back({.kind = OpKind::kernel,
                      .phase = Phase::step,
                      .work = Work::adam,
                      .states = kAllState | kGrads | kParams,
                      .stream = {2},
                      .chunk = 0,
                      .deps_begin = 1,
                      .deps_count = 2,
                      .buffer = {0},
                      .bytes = {28000},
                      .range = {0, 1000}});
  plan.ops.push_back({.kind = OpKind::collective,
                      .phase = Phase::finalize,
                      .work = Work::reduce_scatter,
                      .stream = {2},
                      .members = 16,
                      .domains = 2,
                      .bytes = {4000}});
  plan.ops.back().expert = true;
  plan.ops.push_back({.kind = OpKind::compute, .phase = Phase::forward, .stream = {2}, .duration = {123456789012}});
  plan.ops.push_back({.kind = OpKind::release,
                      .phase = Phase::step,
                      .stream = {0},
                      .deps_begin = 3,
                      .deps_count = 1,
                      .buffer = {0},
                      .after = {2}});
  return plan;
}

std::string error_with(const std::string& old_text, const std::string& new_text) {
  std::string text = to_json(small_plan());
  const std::size_t at = text.find(old_text);
  REQUIRE(at != std::string::npos);
  text.replace(at, old_text.size(), new_text);
  return error_of([&] { plans_from_json(text, "plan.json"); });
}

}  // namespace

TEST_CASE("a plan survives JSON") {
  const Plan plan = small_plan();
  const Plan again = plans_from_json(to_json(plan), "plan.json").front();
  REQUIRE(again.job == plan.job);
  REQUIRE(again.candidate == plan.candidate);
  REQUIRE(again.rank == plan.rank);
  REQUIRE(again.shards == plan.shards);
  REQUIRE(again.streams == plan.streams);
  REQUIRE(again.buffers == plan.buffers);
  REQUIRE(again.deps == plan.deps);
  REQUIRE(again.ops == plan.ops);
  REQUIRE(to_json(again) == to_json(plan));
}

TEST_CASE("a plan of another part of life survives JSON with its parameters") {
  Plan plan = small_plan();
  plan.part = LifePart::save;
  plan.parameters = {{"output_layer.weight", {20, 20}, {0}, false, false},
                     {"decoder.layers.0.mlp.linear_fc1.weight [tp 0/2]", {600}, {424}, true, true}};
  plan.shards[0].parameter = 1;
  plan.shards[0].offset = {3};
  plan.buckets[0].quantized = true;
  plan.buffers.push_back({.name = "largest", .role = Role::largest, .parameters = {1, 0}});
  plan.buffers.push_back({.name = "checkpoint 0", .memory = Memory::pinned, .bytes = {100}, .role = Role::checkpoint});
  plan.ops.push_back({.kind = OpKind::host_work,
                      .phase = Phase::save,
                      .work = Work::store,
                      .states = kParams,
                      .stream = {0},
                      .host_buffer = {3},
                      .bytes = {50},
                      .range = {0, 25}});
  const Plan again = plans_from_json(to_json(plan), "plan.json").front();
  REQUIRE(again.part == plan.part);
  REQUIRE(again.parameters == plan.parameters);
  REQUIRE(again.shards == plan.shards);
  REQUIRE(again.buckets == plan.buckets);
  REQUIRE(again.buffers == plan.buffers);
  REQUIRE(again.ops == plan.ops);
  REQUIRE(to_json(again) == to_json(plan));
}

TEST_CASE("a file may hold several parts of one rank's life, each once and in order") {
  std::vector<Plan> plans(3);
  plans[1].part = LifePart::init;
  plans[2].rank = 1;
  const std::vector<Plan> again = plans_from_json(to_json(plans), "plan.json");
  REQUIRE(again.size() == 3);
  CHECK(again[1].part == LifePart::init);
  CHECK(again[2].part == LifePart::step);
  std::swap(plans[0], plans[1]);
  REQUIRE_THROWS_AS(plans_from_json(to_json(plans), "plan.json"), InputError);
  plans[1].part = LifePart::init;
  REQUIRE_THROWS_AS(plans_from_json(to_json(plans), "plan.json"), InputError);
}

TEST_CASE("an empty plan survives JSON") {
  const Plan again = plans_from_json(to_json(Plan{}), "plan.json").front();
  REQUIRE(again.ops.empty());
  REQUIRE(to_json(again) == to_json(Plan{}));
}

TEST_CASE("the text is stable and readable") {
  const std::string text = to_json(small_plan());
  REQUIRE(text.starts_with(
      "{\n\"format\": \"ebb-plan\",\n\"version\": 3,\n\"ranks\": [\n{\n\"job\": \"a \\\"job\\\"\",\n"));
  REQUIRE(text.find("\n{\"kind\":\"copy-h2d\",\"phase\":\"step\",\"stream\":1,\"states\":[\"exp_avg\",\"exp_avg_sq\","
                    "\"master\"],\"chunk\":0,\"calls\":6,\"deps\":[0],\"buffer\":0,\"bytes\":12000,\"range\":[0,1000]},"
                    "\n") != std::string::npos);
}

TEST_CASE("a damaged plan is refused with the path of what is wrong") {
  REQUIRE(error_with("\"rank\": 7,", "\"rank\": 7").starts_with("plan.json:9:11: this is not valid JSON"));
  REQUIRE(error_with("ebb-plan", "ebb-plant") == "plan.json: format: this is not an ebb-plan");
  REQUIRE(error_with("\"version\": 3", "\"version\": 2") ==
          "plan.json: version: version 2 is not read, only 3; write it again with this ebb");
  REQUIRE(error_with("\"rank\": 7", "\"rank\": -7") ==
          "plan.json: ranks[0].rank: expected a whole number from 0 to 4294967295, found -7");
  REQUIRE(error_with("\"rank\": 7", "\"rank\": 7.5").find("found 7.5") != std::string::npos);
  REQUIRE(
      error_with("\"bytes\":4000", "\"bytes\":18446744073709551615").starts_with("plan.json: ranks[0].ops[3].bytes: "));
  REQUIRE(error_with("\"kind\":\"copy-h2d\"", "\"kind\":\"copy-h2b\"") ==
          "plan.json: ranks[0].ops[1].kind: unknown word \"copy-h2b\"; did you mean \"copy-h2d\"?");
  REQUIRE(error_with("\"deps\":[0]", "\"deps\":[1]") ==
          "plan.json: ranks[0].ops[1].deps[0]: expected a whole number from 0 to 0, found 1");  // of itself
  REQUIRE(error_with("\"stream\":1", "\"stream\":3")
              .starts_with("plan.json: ranks[0].ops[1].stream: expected a whole number"));
  REQUIRE(error_with("\"buffer\":0", "\"bufer\":0") ==
          "plan.json: ranks[0].ops[0]: unknown key \"bufer\"; did you mean \"buffer\"?");
  REQUIRE(error_with("\"range\":[0,1000]", "\"range\":[5,4]").starts_with("plan.json: ranks[0].ops[1].range[1]: "));
  REQUIRE(error_with("\"ends_with\":\"step\"", "\"ends_with\":\"stop\"") ==
          "plan.json: ranks[0].buffers[0].ends_with: unknown word \"stop\"; did you mean \"step\"?");
  REQUIRE(error_with("\"stream\":1,", "").find("ops[1]: the key \"stream\" is missing") != std::string::npos);
  REQUIRE(error_with("\"rank\": 7", "\"rank\": 1e999") == "plan.json: this is not valid JSON; write it with ebb");
  REQUIRE(error_of([] { plans_from_json("[]", "p"); }) == "p: the document: expected an object, found array");
  REQUIRE(error_of([] { plans_from_json("", "p"); }).starts_with("p:1:1: this is not valid JSON"));
  REQUIRE(error_of([] { plans_from_json(std::string(300'000, '['), "p"); }).find("not valid JSON") !=
          std::string::npos);
}

TEST_CASE("no mutation of a plan does anything but load or be refused") {
  const std::string good = to_json(small_plan());
  std::mt19937 random(7);
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = test::mutate(good, random);
    if (!error_of([&] { to_json(plans_from_json(text, "plan.json")); }).empty()) ++refused;
  }
  REQUIRE(refused > 10'000);
}
