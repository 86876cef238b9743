// check(Job): every rule rejects the job that breaks it, at the place of the key that does, with a cure that works; and
// candidate requests are completed or rejected as documented.
#include "planner/constraints.hpp"

#include <string>

#include "tests/catch.hpp"
#include "tests/planner/test_job.hpp"

using namespace ebb;
using ebb::test::small_job;

namespace {

/// The message, or "" when the job is accepted.
std::string rejection(const Job& job) {
  try {
    check(job);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

template <class Change>
std::string rejection_after(const Change& change) {
  Job job = small_job();
  change(job);
  return rejection(job);
}

MoeSpec eight_experts() {
  MoeSpec moe;
  moe.experts = 8;
  moe.top_k = 2;
  moe.ffn = 1024;
  return moe;
}

}  // namespace

TEST_CASE("a valid job is accepted") { REQUIRE(rejection(small_job()) == ""); }

TEST_CASE("an error names the place of its key") {
  Job job = small_job();
  job.parallel.tensor = 3;
  job.parallel.gpus = 9;
  job.places["parallel.tensor"] = {"small.yaml", 4, 21};
  REQUIRE(rejection(job).rfind("small.yaml:4:21: parallel.tensor: 3 does not divide the 16 attention heads", 0) == 0);
}

TEST_CASE("sizes that do not divide are rejected with the nearest that do") {
  const auto rejected = [](auto change) { return rejection_after(change); };
  CHECK(holds(rejected([](Job& j) { j.parallel.gpus = 12, j.parallel.tensor = 8; }), "use 8 or 16 GPUs"));
  CHECK(holds(rejected([](Job& j) { j.parallel.tensor = 16; }), "8 GPUs are fewer than"));
  CHECK(holds(rejected([](Job& j) { j.parallel.gpus = 15, j.parallel.pipeline = 5, j.batch.global = 15; }),
              "use a product of 4 or 8"));
  CHECK(holds(rejected([](Job& j) { j.model.heads = 12, j.parallel.tensor = 8; }), "use 6 or 12"));
  CHECK(holds(rejected([](Job& j) { j.model.ffn = 4098, j.parallel.tensor = 4; }), "columns of ffn"));
  CHECK(holds(rejected([](Job& j) { j.batch.global = 20; }), "batch.global: 20 is not a multiple of"));
  CHECK(holds(rejected([](Job& j) { j.batch.global = 20; }), "use 16 or 24"));
  CHECK(holds(rejected([](Job& j) { j.batch.global = 4; }), "use 8"));
  CHECK(holds(rejected([](Job& j) { j.parallel.optimizer_instances = 3; }), "use 2 or 4"));
}

TEST_CASE("a prediction layer's projection is split over the tensor ranks") {
  REQUIRE(holds(rejection_after([](Job& j) {
                  j.model.mtp = MtpSpec{1};
                  j.model.hidden += 2;
                  j.parallel.tensor = 4;
                }),
                "prediction layer"));
}

TEST_CASE("a batch whose activations no number can count is rejected at its place") {
  REQUIRE(holds(rejection_after([](Job& j) {
                  j.compute.attention = Attention::local;
                  j.batch.sequence = std::int64_t{1} << 30;
                }),
                "batch.sequence"));
}

TEST_CASE("budgets beyond the hardware are rejected") {
  REQUIRE(holds(rejection_after([](Job& j) { j.budget.device = Bytes{j.cluster.gpu.memory.value.value + 1}; }),
                "budget.device"));
  REQUIRE(holds(rejection_after([](Job& j) { j.budget.host = Bytes{j.cluster.host.memory.value.value + 1}; }),
                "budget.host"));
}

TEST_CASE("fp32 parameters are planned resident and without a recipe") {
  REQUIRE(rejection_after([](Job& j) { j.precision.params = Dtype::fp32; }) == "");
  REQUIRE(holds(rejection_after([](Job& j) {
                  j.precision.params = Dtype::fp32;
                  j.offload.policy = Policy::chunked;
                }),
                "precision.params: chunked with fp32 parameters"));
}

TEST_CASE("query groups are split or shared by whole ranks") {
  REQUIRE(rejection_after([](Job& j) { j.model.kv_heads = 2, j.parallel.tensor = 8; }) == "");
  REQUIRE(holds(rejection_after([](Job& j) { j.model.kv_heads = 6, j.parallel.tensor = 4; }), "kv_heads"));
}

TEST_CASE("virtual pipelining needs a pipeline, layers and micro-batches for it") {
  REQUIRE(holds(rejection_after([](Job& j) { j.parallel.virtual_pipeline = 2; }), "needs pipeline > 1"));
  const auto interleaved = [](std::int64_t global) {
    return rejection_after([&](Job& j) {
      j.parallel.pipeline = 4;
      j.parallel.virtual_pipeline = 2;
      j.batch.global = global;
    });
  };
  REQUIRE(interleaved(16) == "");
  REQUIRE(holds(interleaved(12), "micro-batches are not a multiple of pipeline 4"));
}

TEST_CASE("a pipeline layout replaces the even split") {
  REQUIRE(rejection_after([](Job& j) {
            j.model.layers = 7;
            j.parallel.pipeline = 2;
            j.parallel.pipeline_layout = "Ettt|ttttL";
          }) == "");
}

TEST_CASE("sequence and context parallelism split the sequence evenly") {
  CHECK(holds(rejection_after([](Job& j) { j.parallel.sequence = true; }), "needs tensor > 1"));
  CHECK(holds(rejection_after([](Job& j) { j.parallel.context = 4, j.batch.sequence = 2044; }), "use 2040 or 2048"));
  CHECK(
      holds(rejection_after([](Job& j) { j.parallel.tensor = 8, j.parallel.sequence = true, j.batch.sequence = 2044; }),
            "not a multiple of tensor 8"));
  CHECK(holds(rejection_after([](Job& j) { j.model.positions = Positions::learned, j.model.max_positions = 1024; }),
              "use at most 1024"));
}

TEST_CASE("experts divide over their ranks and need sequence parallelism beside tensor parallelism") {
  const auto with_moe = [](auto change) {
    return rejection_after([&](Job& j) {
      j.model.moe = eight_experts();
      change(j);
    });
  };
  CHECK(with_moe([](Job& j) { j.parallel.expert = 8; }) == "");
  CHECK(holds(with_moe([](Job& j) { j.model.moe->experts = 6, j.parallel.expert = 4; }), "use 3 or 6"));
  CHECK(holds(with_moe([](Job& j) { j.parallel.tensor = j.parallel.expert_tensor = 2; }), "set sequence: true"));
  CHECK(holds(with_moe([](Job& j) { j.parallel.optimizer_instances = 2, j.parallel.expert = 8; }),
              "expert data parallelism"));
  CHECK(holds(rejection_after([](Job& j) { j.parallel.expert = 2; }), "the model has no experts"));
}

TEST_CASE("precision that Megatron does not have is rejected") {
  CHECK(holds(rejection_after([](Job& j) { j.precision.params = Dtype::fp8; }), "fp8.param_gather"));
  CHECK(holds(rejection_after([](Job& j) { j.precision.grads = Dtype::fp8; }), "use fp32 or bf16"));
  CHECK(holds(rejection_after([](Job& j) { j.precision.fp8_param_gather = true; }), "needs an fp8 recipe"));
}

TEST_CASE("a policy that the job names must suit its precision") {
  const auto with_bf16_moments = [](Policy policy, Fp8Recipe recipe) {
    return rejection_after([&](Job& j) {
      j.precision.exp_avg = j.precision.exp_avg_sq = Dtype::bf16;
      j.precision.fp8 = recipe;
      j.offload.policy = policy;
    });
  };
  CHECK(holds(with_bf16_moments(Policy::chunked, Fp8Recipe::none), "precision-aware"));
  CHECK(holds(with_bf16_moments(Policy::chunked, Fp8Recipe::delayed), "precision-aware"));
  CHECK(with_bf16_moments(Policy::chunked, Fp8Recipe::blockwise) == "");
  CHECK(with_bf16_moments(Policy::windowed, Fp8Recipe::none) == "");
  CHECK(holds(rejection_after([](Job& j) {
                j.precision.exp_avg = Dtype::fp8;
                j.offload.policy = Policy::windowed;
              }),
              "fp32 or bf16 moments"));
}

TEST_CASE("hostile sizes are rejected before anything is computed from them") {
  CHECK(holds(rejection_after([](Job& j) { j.parallel.gpus = 1LL << 62; }), "out of range"));
  CHECK(holds(rejection_after([](Job& j) { j.model.layers = 0; }), "too small"));
  CHECK(holds(rejection_after([](Job& j) { j.batch.sequence = -1; }), "too small"));
  CHECK(holds(rejection_after([](Job& j) { j.parallel.tensor = j.parallel.pipeline = j.parallel.context = 1 << 18; }),
              "fewer than"));
  CHECK(holds(rejection_after([](Job& j) { j.model.ffn = 1LL << 60; }), "out of range"));
  CHECK(holds(rejection_after([](Job& j) {
                j.model.layers = 4096;
                j.model.hidden = j.model.ffn = 1 << 24;
              }),
              "Ebb plans models of up to 1e15"));
  CHECK(holds(rejection_after([](Job& j) { j.budget.device = Bytes{0}; }), "not positive"));
}

namespace {

const RequestPlaces kPlaces = {{"--policy"},   {"--chunk-numel"}, {"--chunk-size-mb"},
                               {"--fraction"}, {"--slots"},       {"--cap"}};

std::string request_rejection(const CandidateRequest& request) {
  try {
    candidate_of(request, kPlaces);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a request is completed with the policy's defaults") {
  CandidateRequest request;
  request.policy = Policy::windowed;
  Candidate candidate = candidate_of(request, kPlaces);
  CHECK(candidate.chunk_size_mb == 0);
  CHECK(candidate.fraction == 1.0);
  request.policy = Policy::pipelined;
  candidate = candidate_of(request, kPlaces);
  CHECK(candidate.slots == 2);
  CHECK(candidate.chunk_numel == Numel{4194304});
}

TEST_CASE("a request out of range or unused by its policy is rejected at its option") {
  CandidateRequest request;
  CHECK(holds(request_rejection(request), "--policy: no policy is given"));
  request.policy = Policy::chunked;
  CHECK(holds(request_rejection(request), "--chunk-numel: chunked needs a chunk-numel"));
  request.chunk_numel = Numel{0};
  CHECK(holds(request_rejection(request), "--chunk-numel: 0 elements"));
  request.chunk_numel = Numel{1};
  CHECK(request_rejection(request) == "");
  request.slots = 3;
  CHECK(holds(request_rejection(request),
              "--slots: chunked does not use a number of slots; leave it out, or choose pip"));
  request = {};
  request.policy = Policy::pipelined;
  request.slots = 1;
  CHECK(holds(request_rejection(request), "--slots: 1 slots"));
  request = {};
  request.policy = Policy::windowed;
  for (const double fraction : {0.0, -1.0, 1.5}) {
    request.fraction = fraction;
    CHECK(holds(request_rejection(request), "outside (0, 1]"));
  }
}

TEST_CASE("an unknown policy is answered with the nearest") {
  REQUIRE(parse_policy("full-reload", {}) == Policy::full_reload);
  try {
    parse_policy("chunkd", {"--policy"});
    FAIL("accepted");
  } catch (const InputError& error) {
    REQUIRE(holds(error.what(), "did you mean \"chunked\"?"));
  }
}
