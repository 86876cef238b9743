// The whole matrix on the CPU reference: bf16, FP8 in blocks and MXFP8 weights, fp32 and bf16 moments, every policy
// that moves state, one rank and two; each through 20 steps with a skipped one, a save, a kill and resume, and a resume
// on the other number of ranks, bit for bit, with lower peaks and state below its bound. Also tensorwise scales, which
// cross ranks and chunks, masters that the optimizer holds, and fp16 with loss scaling. The orders of held-back streams
// are run for every recipe and policy on two ranks with fp32 moments.
#include "tests/catch.hpp"
#include "tests/replay/life_pairs.hpp"

using namespace ebb;
using namespace ebb::replay;
using namespace ebb::test;

namespace {

/// Weights of a layer are cut by ranks, buckets and chunks inside their tiles. Activations exceed the windows in which
/// parameters are quantised: full reload, whose state is away beside them and back for those, saves nothing otherwise.
Job matrix_job(Fp8Recipe recipe, Dtype moments) {
  Job job = tiny_job();
  job.model.layers = 2;
  job.model.hidden = 64;
  job.model.ffn = 160;
  job.model.vocab = 96;
  job.batch.sequence = 512;
  job.batch.global = 2;  // two micro-batches on one rank, one on two: every one is a walk over all parameters
  job.parallel.bucket_numel = Numel{30000};
  job.precision.exp_avg = job.precision.exp_avg_sq = moments;
  if (moments != Dtype::fp32) job.precision.remainders = false;
  job.precision.fp8 = recipe;
  job.precision.fp8_param_gather = recipe != Fp8Recipe::none;
  if (recipe == Fp8Recipe::mxfp8) job.precision.fp8_reuse_grad_buffer = false;
  return job;
}

/// Between two and three chunks of a MiB of moments on each of two ranks, so that two windows are less than all: no
/// more elements than that takes, as they are what the matrix costs.
Job windowed_job(Job job) {
  job.model.vocab = job.precision.exp_avg == Dtype::fp32 ? 4608 : 8192;
  return job;
}

const std::vector<Candidate> kCandidates = {
    {.policy = Policy::full_reload},
    {.policy = Policy::chunked, .chunk_numel = {9000}},
    {.policy = Policy::pipelined, .chunk_numel = {5001}, .slots = 3},
    {.policy = Policy::tidal, .chunk_numel = {5001}},
};
constexpr Candidate kWindowed{.policy = Policy::windowed, .chunk_size_mb = 1};

void lives(const Job& job, const Candidate& candidate, int ranks, bool disturbed) {
  const TwoRankLife life(job, candidate, ranks);
  LifeExecutor executor = life.executor();
  if (!disturbed) executor.disturbed.clear();
  const LifeEquivalence result = life.compare(standard_life(20), executor);
  INFO(text_of(candidate) << ", " << ranks << " ranks first\n" << to_text(result));
  CHECK(result.holds());
}

void row(Fp8Recipe recipe, Dtype moments) {
  const Job job = matrix_job(recipe, moments);
  for (const int ranks : {1, 2}) {
    const bool disturbed = ranks == 2 && moments == Dtype::fp32;
    for (const Candidate& candidate : kCandidates) lives(job, candidate, ranks, disturbed);
    lives(windowed_job(job), kWindowed, ranks, false);
  }
}

}  // namespace

TEST_CASE("bf16 weights with fp32 moments") { row(Fp8Recipe::none, Dtype::fp32); }
TEST_CASE("bf16 weights with bf16 moments") { row(Fp8Recipe::none, Dtype::bf16); }
TEST_CASE("FP8 in blocks with fp32 moments") { row(Fp8Recipe::blockwise, Dtype::fp32); }
TEST_CASE("FP8 in blocks with bf16 moments") { row(Fp8Recipe::blockwise, Dtype::bf16); }
TEST_CASE("MXFP8 with fp32 moments") { row(Fp8Recipe::mxfp8, Dtype::fp32); }
TEST_CASE("MXFP8 with bf16 moments") { row(Fp8Recipe::mxfp8, Dtype::bf16); }

TEST_CASE("FP8 with a scale a tensor") {
  for (const Candidate& candidate : kCandidates)
    lives(matrix_job(Fp8Recipe::tensorwise, Dtype::fp32), candidate, 2, false);
}

TEST_CASE("windowed with every stream held back") {
  Job job = windowed_job(matrix_job(Fp8Recipe::none, Dtype::fp32));
  job.model.hidden = 32;
  lives(job, kWindowed, 2, true);
}

TEST_CASE("masters that the optimizer holds") {
  Job job = matrix_job(Fp8Recipe::none, Dtype::fp32);
  job.precision.precision_aware = true;
  job.precision.remainders = false;
  for (const Candidate& candidate : kCandidates) lives(job, candidate, 2, false);
}

TEST_CASE("fp32 parameters that are their own masters") {
  Job job = matrix_job(Fp8Recipe::none, Dtype::fp32);
  job.precision.params = Dtype::fp32;
  for (const Candidate& candidate : kCandidates) lives(job, candidate, 2, false);
}

TEST_CASE("fp16 parameters with a scaled loss") {
  Job job = matrix_job(Fp8Recipe::none, Dtype::fp32);
  job.precision.params = Dtype::fp16;
  const TwoRankLife life(job, kCandidates[1]);
  TrainingOptions training;
  training.scaling.on = true;
  training.scaling.initial = 1024.0F;
  training.scaling.hysteresis = 1;
  LifeExecutor executor = life.executor();
  executor.disturbed.clear();
  const LifeEquivalence result = life.compare(standard_life(20), executor, training);
  INFO(to_text(result));
  CHECK(result.holds());
  const std::vector<StepNumbers>& steps = result.baseline.front().numbers.front().steps;
  CHECK(steps[2].skipped);
  CHECK(steps[2].loss_scale == 1024.0F);
  CHECK(steps[3].loss_scale == 512.0F);
}
