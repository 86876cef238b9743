// FP8 lives from which something about their scales was taken. A largest value that was not found changes no number
// where it was not the tensor's maximum, so execution alone cannot tell: compile() must refuse the plan.
#include <algorithm>
#include <array>

#include "models/errors.hpp"
#include "replay/reference_rank.hpp"
#include "replay/reference_run.hpp"
#include "tests/catch.hpp"
#include "tests/replay/life_cases.hpp"
#include "tests/replay/mutants.hpp"

using namespace ebb;
using namespace ebb::replay;
using namespace ebb::test;

namespace {

constexpr std::array kRecipes = {Fp8Recipe::tensorwise, Fp8Recipe::blockwise, Fp8Recipe::mxfp8};

Job quantized_job(Fp8Recipe recipe, int gpus) {
  Job job = smallest_life_job(gpus);
  job.precision.fp8 = recipe;
  job.precision.fp8_param_gather = true;
  job.precision.fp8_reuse_grad_buffer = false;
  return job;
}

bool of_largest(const Plan& plan, const Op& op) {
  return op.buffer.valid() && plan.buffers[op.buffer.index].role == Role::largest;
}
bool is_find(const Plan&, const Op& op) { return op.work == Work::find_largest; }
bool is_zero(const Plan& plan, const Op& op) { return op.work == Work::zero_state && of_largest(plan, op); }
bool is_maximum(const Plan& plan, const Op& op) { return op.kind == OpKind::collective && of_largest(plan, op); }

/// The parts that must come before, then `part`. What a load fetches is 0.
void run_up_to(const std::vector<LifeRank>& ranks, LifePart part) {
  using enum LifePart;
  std::vector<LifePart> parts = {init};
  if (part == step || part == reload) parts.push_back(first_step);
  if (part != init) parts.push_back(part);
  ReferenceRun run(ranks, TrainingOptions{}, std::nullopt);
  for (std::size_t r = 0; r < run.size(); ++r)
    run.rank(r).checkpoint.fetch = [](const CheckpointPiece& piece, std::byte* data) {
      std::fill_n(data, bytes_of(piece.numel, size_of(piece.type)).value, std::byte{0});
    };
  for (const LifePart next : parts) run.part(next);
}

/// The error of compile_life() where the `p`-th plan is another, else that of a run; empty where there is none.
std::string refusal(std::vector<Plan> plans, std::size_t p, Plan mutant) {
  plans[p] = std::move(mutant);
  try {
    const std::vector<LifeRank> ranks = compile_ranks(plans);
    if (ranks.size() == 1) return "";
    // A rank that owns all of a call's tensors needs no maximum over ranks, but the others do: they wait for it.
    run_up_to(ranks, plans[p].part);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// Every such op of every part dropped in turn. Returns how many there were.
template <class Which>
int drop_each(const std::vector<Plan>& plans, Which which, const char* words) {
  int dropped = 0;
  for (std::size_t p = 0; p < plans.size(); ++p) {
    const Plan& plan = plans[p];
    for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
      if (!which(plan, plan.ops[i])) continue;
      INFO("rank " << plan.rank << ", " << name_of(plan.part) << ", op " << i);
      const std::string error = refusal(plans, p, without_op(plan, i));
      CHECK_THAT(error, Catch::Contains("op "));
      if (error.find("meets") == std::string::npos && error.find("deadlock") == std::string::npos) {
        CHECK_THAT(error, Catch::Contains(words) && Catch::Contains("\""));
      } else {
        CHECK(is_maximum(plan, plan.ops[i]));
      }
      ++dropped;
    }
  }
  return dropped;
}

}  // namespace

TEST_CASE("A plan that leaves out a find-largest, a zeroing or a maximum over ranks is refused with op and tensor") {
  for (const Fp8Recipe recipe : kRecipes) {
    for (const int gpus : {1, 2}) {
      const Job job = quantized_job(recipe, gpus);
      for (const Candidate& candidate : life_candidates(owned_by_first(job))) {
        INFO("recipe " << static_cast<int>(recipe) << ", " << gpus << " ranks, " << text_of(candidate));
        const std::vector<Plan> plans = host_life(job, candidate).plans;
        REQUIRE(compile_ranks(plans).size() == static_cast<std::size_t>(gpus));
        CHECK(drop_each(plans, is_find, "are not found before") > 0);
        CHECK(drop_each(plans, is_zero, "not zeroed before") > 0);
        const int maxima = drop_each(plans, is_maximum, "do not come together before");
        CHECK((maxima > 0) == (gpus > 1));
      }
    }
  }
}

TEST_CASE("A find-largest of fewer elements, or one that may come late, is refused") {
  const Job job = quantized_job(Fp8Recipe::blockwise, 1);
  const std::vector<Plan> plans =
      host_life(job, {.policy = Policy::chunked, .chunk_numel = {owned_by_first(job) / 7}}).plans;
  int shortened = 0, early = 0;
  for (std::size_t p = 0; p < plans.size(); ++p) {
    for (std::uint32_t i = 0; i < plans[p].ops.size(); ++i) {
      const Op& op = plans[p].ops[i];
      if (is_find(plans[p], op) && op.range.numel().value > 1) {
        Plan mutant = plans[p];
        --mutant.ops[i].range.end;
        CHECK_THAT(refusal(plans, p, mutant), Catch::Contains("are not found before"));
        ++shortened;
      }
      // On a stream of its own, without its dependencies: it may run before what it needs has ended.
      if (op.work == Work::quantize) {
        Plan mutant = plans[p];
        mutant.ops[i].deps_count = 0;
        for (std::uint32_t s = 0; s < mutant.streams.size(); ++s)
          if (mutant.streams[s].kind == StreamKind::comm) mutant.ops[i].stream = {s};
        CHECK_THAT(refusal(plans, p, mutant), Catch::Contains("are not found before"));
        ++early;
      }
    }
  }
  CHECK(shortened > 10);
  CHECK(early > 10);
}
