// Flags are the tokens of Megatron-LM's command line, and each Megatron takes those that it has.
#include "planner/flags.hpp"

#include "planner/rules.hpp"
#include "tests/catch.hpp"
#include "tests/planner/test_job.hpp"

using namespace ebb;

TEST_CASE("tokens to paste") {
  const std::vector<std::string> chunked = {"--offload-optimizer-states", "--offload-optimizer-states-chunk-numel",
                                            "400000000"};
  CHECK(flags_of({.policy = Policy::chunked, .chunk_numel = {400'000'000}}) == chunked);
  const std::vector<std::string> windowed = {"--chunked-optimizer-state-offload",
                                             "--optimizer-state-offload-chunk-size-mb", "512",
                                             "--optimizer-state-offload-fraction", "0.35"};
  CHECK(flags_of({.policy = Policy::windowed, .chunk_size_mb = 512, .fraction = 7 / 20.0}) == windowed);
  const std::vector<std::string> cpu_adam = {"--optimizer-cpu-offload", "--optimizer-offload-fraction", "1",
                                             "--use-precision-aware-optimizer"};
  CHECK(flags_of({.policy = Policy::cpu_adam}) == cpu_adam);
  CHECK(flags_of({.policy = Policy::full_reload}) == std::vector<std::string>{"--offload-optimizer-states"});
  CHECK(flags_of({.policy = Policy::resident}).empty());
  CHECK(flags_of({.policy = Policy::pipelined, .chunk_numel = {1 << 22}, .slots = 2}).empty());
}

TEST_CASE("each Megatron takes the flags that it has") {
  CHECK(accepts(Megatron::main, Policy::resident));
  CHECK(accepts(Megatron::main, Policy::cpu_adam));
  CHECK_FALSE(accepts(Megatron::main, Policy::chunked));
  CHECK_FALSE(accepts(Megatron::main, Policy::windowed));
  CHECK(accepts(Megatron::dev, Policy::windowed));
  CHECK_FALSE(accepts(Megatron::dev, Policy::full_reload));  // there an alias of windowed with chunk 0
  CHECK(accepts(Megatron::pr6544, Policy::full_reload));
  CHECK(accepts(Megatron::pr6544, Policy::chunked));
  CHECK_FALSE(accepts(Megatron::pr6544, Policy::windowed));
  for (const Policy policy : kPolicies)
    CHECK(accepts(Megatron::any, policy) == (policy != Policy::pipelined && policy != Policy::tidal));
}

TEST_CASE("MXFP8 parameter gather rules out chunks, not the full reload") {
  Job job = test::small_job();
  job.precision.fp8 = Fp8Recipe::mxfp8;
  job.precision.fp8_param_gather = true;
  CHECK(objection_to(job, {.policy = Policy::chunked}) != "");
  CHECK(objection_to(job, {.policy = Policy::full_reload}) == "");
  CHECK(objection_to(job, {.policy = Policy::windowed}) == "");
}

TEST_CASE("the host's Adam keeps fp32 state, so another precision would change the numbers") {
  Job job = test::small_job();
  CHECK(objection_to(job, {.policy = Policy::cpu_adam}) == "");
  job.precision.exp_avg = Dtype::bf16;
  CHECK(objection_to(job, {.policy = Policy::cpu_adam}) != "");
}

TEST_CASE("an unknown Megatron is an input error") { REQUIRE_THROWS_AS(parse_megatron("master", {}), InputError); }
