// Lives with FP8 parameters on the reference: whatever the recipe, the policy and its chunks, the bits (scales too) of
// an uninterrupted resident run.
#include "tests/replay/life_checks.hpp"

using namespace ebb;
using namespace ebb::test;

namespace {

LifeJob quantized_job(Fp8Recipe recipe, Columnwise columns, bool bf16_moments, int gpus) {
  LifeJob what{.name = "", .job = life_job(gpus), .training = {}};
  Precision& precision = what.job.precision;
  precision.fp8 = recipe;
  precision.fp8_param_gather = true;
  precision.fp8_reuse_grad_buffer = false;
  precision.fp8_columnwise = columns;
  if (bf16_moments) precision.exp_avg = precision.exp_avg_sq = Dtype::bf16;
  what.name = std::string("fp8 recipe ") + std::to_string(static_cast<int>(recipe)) +
              (columns == Columnwise::eager ? ", eager" : ", lazy") + (bf16_moments ? ", bf16 moments" : "");
  return what;
}

}  // namespace

TEST_CASE("FP8 parameters: skipped, saved, killed and resumed, the bits of an uninterrupted resident run") {
  for (const int gpus : {1, 2})
    for (const Fp8Recipe recipe : {Fp8Recipe::tensorwise, Fp8Recipe::blockwise, Fp8Recipe::mxfp8})
      for (const Columnwise columns : {Columnwise::lazy, Columnwise::eager})
        for (const bool bf16_moments : {false, true})
          check_interrupted(quantized_job(recipe, columns, bf16_moments, gpus), gpus);
}

TEST_CASE("FP8 parameters: no chunk's border changes a scale") {
  for (const Fp8Recipe recipe : {Fp8Recipe::tensorwise, Fp8Recipe::blockwise, Fp8Recipe::mxfp8}) {
    const LifeJob what = quantized_job(recipe, Columnwise::lazy, false, 2);
    const auto whole = live(life_of(what.job, {.policy = Policy::resident}), {}, {init(), steps(3)});
    for (const std::int64_t chunk : {37, 512, 1023, 4096, 100000}) {
      for (const Policy policy : {Policy::chunked, Policy::pipelined}) {
        INFO(what.name << ", " << name_of(policy) << ", chunks of " << chunk);
        Candidate candidate{.policy = policy, .chunk_numel = {chunk}};
        if (policy == Policy::pipelined) candidate.slots = 2;
        check_tail(whole, live(life_of(what.job, candidate), {}, {init(), steps(3)}));
      }
    }
  }
}

TEST_CASE("FP8 parameters: the same bits with each stream held back") {
  for (const Fp8Recipe recipe : {Fp8Recipe::tensorwise, Fp8Recipe::blockwise, Fp8Recipe::mxfp8}) {
    const LifeJob what = quantized_job(recipe, Columnwise::lazy, false, 2);
    const TemporaryDirectory kept("fp8-orders-base");
    const std::vector<LifeEvent> events = {init(), steps(2), save(kept.path()), load(kept.path()), steps(1)};
    const auto whole = live(life_of(what.job, {.policy = Policy::resident}), {}, events);
    for (const Candidate& candidate : life_candidates(owned_by_first(what.job))) {
      const Life life = life_of(what.job, candidate);
      for (const ReferenceOptions& order : all_orders(life.ranks.size(), {}, 0)) {
        INFO(what.name << ", " << text_of(candidate) << ", "
                       << (order.held_back ? name_of(*order.held_back) : "program order"));
        const TemporaryDirectory directory("fp8-orders");
        const auto numbers =
            live(life, {}, {init(), steps(2), save(directory.path()), load(directory.path()), steps(1)}, order);
        check_sound(numbers);
        check_tail(whole, numbers);
      }
    }
  }
}
