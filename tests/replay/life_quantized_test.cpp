// Lives with FP8 parameters on the reference: whatever the recipe, the policy and its chunks, the bits (scales too) of
// an uninterrupted resident run.
#include <map>

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

/// The first rank's program of a part has such actions.
template <class What>
bool has(const Life& life, LifePart part) {
  for (const Action& action : life.ranks[0].programs[static_cast<std::size_t>(part)]->actions)
    if (std::holds_alternative<What>(action)) return true;
  return false;
}

const Plan& step_plan(const LifeRank& rank) { return *rank.programs[static_cast<std::size_t>(LifePart::step)]->plan; }

/// `plan`: a copy of the program's own, which it stands on from now on.
void leave_out_maxima(Program& program, Plan& plan) {
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    if (!std::holds_alternative<LargestCollective>(program.actions[i])) continue;
    plan.ops[i].kind = OpKind::host_wait;
    plan.ops[i].work = Work::none;
    plan.ops[i].buffer = BufferId::none();
    program.actions[i] = Nothing{};
  }
  program.plan = &plan;
}

}  // namespace

TEST_CASE("FP8 parameters are quantised from masters in init, steps and loads, and dequantised in saves") {
  for (const Fp8Recipe recipe : {Fp8Recipe::tensorwise, Fp8Recipe::blockwise, Fp8Recipe::mxfp8}) {
    const LifeJob what = quantized_job(recipe, Columnwise::lazy, false, 2);
    for (const Candidate& candidate : life_candidates(owned_by_first(what.job))) {
      INFO(what.name << ", " << text_of(candidate));
      const Life life = life_of(what.job, candidate);
      for (const LifePart part : {LifePart::init, LifePart::load, LifePart::load_params, LifePart::reload,
                                  LifePart::first_step, LifePart::step}) {
        INFO(name_of(part));
        CHECK(has<FindLargest>(life, part));
        CHECK(has<LargestCollective>(life, part));
        CHECK(has<Quantize>(life, part));
      }
      CHECK(has<HostMasters>(life, LifePart::init));
      CHECK(has<Dequantize>(life, LifePart::save));
      CHECK(has<MakeColumns>(life, LifePart::step) == (recipe != Fp8Recipe::mxfp8));
      CHECK_FALSE(has<Quantize>(life, LifePart::skip));
      // Steps move parameters by less than the first digits of most of them: some bytes and scales change all the same.
      const auto one = live(life, {}, {init(), steps(1)});
      const auto two = live(life, {}, {init(), steps(2)});
      CHECK(one[0].parameters != two[0].parameters);
    }
  }
}

TEST_CASE("FP8 parameters: without the maximum over ranks scales are wrong, and the numbers show it") {
  for (const Fp8Recipe recipe : {Fp8Recipe::tensorwise, Fp8Recipe::blockwise, Fp8Recipe::mxfp8}) {
    const LifeJob what = quantized_job(recipe, Columnwise::lazy, false, 2);
    const Life good = life_of(what.job, {.policy = Policy::resident});
    // compile() refuses such plans: programs that are not compiled from them.
    Life bad{.plans = good.plans, .ranks = compile_ranks(good.plans)};
    std::size_t p = 0;
    for (LifeRank& rank : bad.ranks) {
      std::map<LifePart, Plan*> plans;
      for (; p < bad.plans.size() && bad.plans[p].rank == step_plan(rank).rank; ++p)
        plans[bad.plans[p].part] = &bad.plans[p];
      for (std::optional<Program>& program : rank.programs)
        if (program) leave_out_maxima(*program, *plans.at(program->plan->part));
    }
    INFO(what.name);
    CHECK(live(good, {}, {init()})[0].parameters != live(bad, {}, {init()})[0].parameters);
    CHECK_FALSE(same_steps(live(good, {}, {init(), steps(2)})[0].steps, live(bad, {}, {init(), steps(2)})[0].steps));
  }
}

TEST_CASE("FP8 parameters: resumed on another number of ranks") {
  for (const Fp8Recipe recipe : {Fp8Recipe::tensorwise, Fp8Recipe::blockwise, Fp8Recipe::mxfp8}) {
    for (const auto& [from, to] : {std::pair(1, 2), std::pair(2, 1)}) {
      const LifeJob before = quantized_job(recipe, Columnwise::lazy, true, from);
      const LifeJob after = quantized_job(recipe, Columnwise::lazy, true, to);
      const TemporaryDirectory directory("fp8-reshard");
      const Candidate chunked{.policy = Policy::chunked, .chunk_numel = {owned_by_first(before.job) / 5}};
      live(life_of(before.job, chunked), {}, {init(), steps(3), save(directory.path())});
      const auto saved = contents(directory.path());
      const auto whole =
          live(life_of(after.job, {.policy = Policy::resident}), {}, {init(), load(directory.path()), steps(3)});
      for (const Candidate& candidate : life_candidates(owned_by_first(after.job))) {
        INFO(before.name << ", " << from << " to " << to << " ranks, " << text_of(candidate));
        const TemporaryDirectory again("fp8-again");
        const auto numbers =
            live(life_of(after.job, candidate), {}, {init(), load(directory.path()), save(again.path()), steps(3)});
        check_sound(numbers);
        CHECK(contents(again.path()) == saved);
        check_tail(whole, numbers);
      }
    }
  }
}

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
