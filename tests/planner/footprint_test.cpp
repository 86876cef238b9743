// Bytes alive between steps, against what Megatron-LM's own runs had allocated.
#include "planner/footprint.hpp"

#include <algorithm>

#include "tests/catch.hpp"
#include "tests/planner/recorded.hpp"

using namespace ebb;
using namespace ebb::tests;

namespace {

Bytes term(const Footprint& footprint, const std::string& name) {
  Bytes sum{0};
  for (const Term& t : footprint.resident)
    if (t.name == name) sum += t.bytes;
  return sum;
}

/// A stage with one bf16 buffer, as the measured single-GPU jobs have: no padding.
StageLayout one_buffer(Numel numel) {
  StageLayout stage;
  stage.chunks.emplace_back();
  stage.chunks[0].embedding = stage.chunks[0].output = true;
  stage.buffers.emplace_back();
  stage.buffers[0].numel = stage.buffers[0].unpadded = numel;
  return stage;
}

/// Allocated between steps on the last data-parallel rank of the last stage, state included (12 bytes an element).
Bytes between_steps(const Job& job) {
  const StageLayout stage = stage_layout(job, job.parallel.pipeline - 1);
  const Numel owned = ebb::owned(rank_shards(stage, job.parallel.dense_shards() - 1, job.parallel.expert_shards() - 1));
  return footprint_of(job, stage, owned).resident_total() + bytes_of(owned, job.precision.state_bytes());
}

std::int64_t error_mib(Bytes predicted, Bytes recorded) {
  return std::abs(predicted.value - recorded.value) / (1 << 20);
}

}  // namespace

TEST_CASE("the measured 1.8 B job: parameters, gradients, workspaces and the score buffer are the measured bytes") {
  const Job job = measured_job(24, 2048);
  const Numel numel{1'816'758'272};
  const Footprint footprint = footprint_of(job, one_buffer(numel), numel);
  CHECK(term(footprint, "parameters") == bytes_of(numel, 2));
  CHECK(term(footprint, "gradients") == bytes_of(numel, 4));
  CHECK(term(footprint, "attention score buffer") == 128_MiB);
  CHECK(term(footprint, "workspaces") == 65_MiB);
  // Chunked: no state on the device between steps. Measured 11,103,775,744, of which 0.8 MiB are small tensors that
  // exist before the first forward.
  CHECK(std::abs(footprint.resident_total().value - 11'103'775'744) < (1 << 20));
  // Resident: 6 MiB more, whole segments that the allocator keeps for six large state tensors.
  CHECK(std::abs(footprint.resident_total().value + 12 * numel.value + (6 << 20) - 32'911'166'464) < (1 << 20));
}

TEST_CASE("the measured 6.3 B job: the same terms add up to the measured bytes") {
  const Job job = measured_job(40, 3072);
  const Numel numel{6'349'114'368};
  const Footprint footprint = footprint_of(job, one_buffer(numel), numel);
  CHECK(term(footprint, "attention score buffer") == 192_MiB);
  // Resident: measured 114,556,771,328, of which state is 12 bytes an element and up to 8 MiB are allocator slack.
  const std::int64_t rest = 114'556'771'328 - footprint.resident_total().value - 12 * numel.value;
  CHECK(rest >= 0);
  CHECK(rest < (8 << 20));
}

TEST_CASE("dense single-stage recorded cases: allocated between steps within 10 MiB, the 15 B one within 26") {
  Job instances = small_gpt(2, 1);
  instances.parallel.optimizer_instances = 2;
  Job tp4 = small_gpt(4, 1);
  tp4.parallel.overlap_grad_reduce = true;
  CHECK(error_mib(between_steps(gpt_7b(4, 1, 1, 2)), {20'663'519'232}) < 10);
  CHECK(error_mib(between_steps(small_gpt(1, 1)), {581'489'664}) < 10);
  CHECK(error_mib(between_steps(tp4), {299'728'384}) < 10);
  CHECK(error_mib(between_steps(instances), {492'011'008}) < 10);
  CHECK(error_mib(between_steps(gpt_15b()), {13'268'858'880}) < 26);
}

TEST_CASE("pipelined recorded cases: allocated between steps within 1.5 percent") {
  for (const RecordedCase& recorded : recorded_dense_cases()) {
    if (!recorded.distributed_optimizer || recorded.job.parallel.pipeline == 1) continue;
    INFO(recorded.id);
    const auto predicted = static_cast<double>(between_steps(recorded.job).value);
    CHECK(predicted == Approx(static_cast<double>(recorded.allocated.value)).epsilon(0.015));
  }
}

TEST_CASE(
    "bf16 gradients: the standard optimizer adds an fp32 copy of the owned part, a precision-aware one does not") {
  Job job = small_gpt(1, 1);
  const Numel owned{1000};
  CHECK(footprint_of(job, one_buffer(owned), owned).step_temporaries == Bytes{0});
  job.precision.grads = Dtype::bf16;
  CHECK(footprint_of(job, one_buffer(owned), owned).step_temporaries == Bytes{4000});
  CHECK(term(footprint_of(job, one_buffer(owned), owned), "gradients") == Bytes{2000});
  job.precision.exp_avg = job.precision.exp_avg_sq = Dtype::bf16;
  CHECK(footprint_of(job, one_buffer(owned), owned).step_temporaries == Bytes{0});
}
