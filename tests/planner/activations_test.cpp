// Saved activations and the turn's temporaries, against peaks that Megatron-LM's own runs reached.
#include "planner/activations.hpp"

#include <algorithm>
#include <numeric>

#include "planner/footprint.hpp"
#include "tests/catch.hpp"
#include "tests/planner/recorded.hpp"

using namespace ebb;
using namespace ebb::tests;

namespace {

/// Bytes an element of what Megatron's default dropout keeps for the micro-batches in flight, and the loader's mask:
/// neither belongs to a job.
Bytes extras(const RecordedCase& recorded, const StageLayout& stage) {
  const Job& job = recorded.job;
  const Bytes dropout_mask{hidden_state_bytes(job).value / 2};
  Bytes sum{0};
  const std::vector<std::int64_t> alive = micro_batches_in_flight(job, stage.pipeline_rank);
  for (std::size_t c = 0; recorded.dropout && c < stage.chunks.size(); ++c) {
    const auto layers = static_cast<std::int64_t>(stage.chunks[c].decoder_layers.size());
    sum += alive[c] * (2 * layers + (stage.chunks[c].embedding ? 1 : 0)) * dropout_mask;
  }
  const std::int64_t s = job.batch.sequence;
  if (recorded.loader_mask) sum += Bytes{job.batch.micro * s * s / job.parallel.context};
  return sum;
}

Bytes state_bytes(const RecordedCase& recorded, const StageLayout& stage) {
  const Numel owned = ebb::owned(
      rank_shards(stage, recorded.job.parallel.dense_shards() - 1, recorded.job.parallel.expert_shards() - 1));
  return bytes_of(owned, 12);
}

/// Predicted over recorded highest allocation on the last rank, less 1.
double peak_error(const RecordedCase& recorded) {
  Job job = recorded.job;
  if (!recorded.distributed_optimizer) job.parallel.optimizer_instances = job.parallel.data() * job.parallel.context;
  const StageLayout stage = stage_layout(job, job.parallel.pipeline - 1);
  const Footprint footprint = footprint_of(job, stage, {0});
  RecordedCase whole = recorded;
  whole.job = job;
  const Bytes peak = footprint.resident_total() + state_bytes(whole, stage) + footprint.activations + footprint.logits +
                     extras(whole, stage);
  return static_cast<double>(peak.value) / static_cast<double>(recorded.max_allocated.value) - 1;
}

/// A stage of one chunk with all layers, embedding and output.
StageLayout whole_model(const Job& job) {
  StageLayout stage;
  ModelChunk chunk;
  chunk.embedding = chunk.output = true;
  chunk.decoder_layers.resize(job.model.layers);
  std::iota(chunk.decoder_layers.begin(), chunk.decoder_layers.end(), 0);
  stage.chunks.push_back(chunk);
  return stage;
}

}  // namespace

TEST_CASE("the measured 1.8 B job: what forward adds is the measured 9,952,031,232 bytes to 1 MiB") {
  // Step 2 of the chunked run: peak 21,055,806,976, before the step 11,103,775,744.
  const Job job = measured_job(24, 2048);
  const StageLayout stage = whole_model(job);
  const Bytes added = saved_activations(job, stage) + turn_temporaries(job, stage);
  CHECK(std::abs(added.value - (21'055'806'976 - 11'103'775'744)) < (1 << 20));
}

TEST_CASE("the measured 6.3 B job: what forward adds stays under the optimizer's own peak") {
  // Its peak is unfused Adam's temporaries, 4 bytes an element: forward and backward must have stayed below.
  const Job job = measured_job(40, 3072);
  const StageLayout stage = whole_model(job);
  CHECK(saved_activations(job, stage) + turn_temporaries(job, stage) < Bytes{139'953'284'096 - 114'556'771'328});
}

TEST_CASE("recorded dense cases: highest allocation within 2.5 percent each, 0.7 percent in the median") {
  std::vector<double> errors;
  for (const RecordedCase& recorded : recorded_dense_cases()) {
    const double error = peak_error(recorded);
    INFO(recorded.id << ": " << 100 * error << " %");
    CHECK(std::abs(error) < 0.025);
    errors.push_back(std::abs(error));
  }
  std::nth_element(errors.begin(), errors.begin() + errors.size() / 2, errors.end());
  CHECK(errors[errors.size() / 2] < 0.007);
}

TEST_CASE("recorded MoE cases: the balanced peak is under the recorded one, by 10 percent at most") {
  // Routers do not balance: the busiest step of the busiest rank holds more tokens than the even share assumed here.
  for (const RecordedCase& recorded : recorded_moe_cases()) {
    const double error = peak_error(recorded);
    INFO(recorded.id << ": " << 100 * error << " %");
    CHECK(error < 0);
    CHECK(error > -0.10);
  }
}

TEST_CASE("one layer of the 7 B model, by hand: tensor parallelism divides what it splits and nothing else") {
  const Job job = gpt_7b(4, 1, 1, 2);  // 16,384 tokens of hidden 4096: 128 MiB a hidden state
  const SavedActivations layer = saved_activations_per_layer(job, false);
  CHECK(layer.norms == 4 * 128_MiB + Bytes{2 * 2 * 4 * 16384});
  CHECK(layer.attention == 48_MiB + 32_MiB + Bytes{4 * 16384 * 8});
  CHECK(layer.mlp == 256_MiB);
  CHECK(layer.scores == Bytes{0});
  CHECK(layer.experts == Bytes{0});
  Job sequence_parallel = job;
  sequence_parallel.parallel.sequence = true;
  CHECK(4 * saved_activations_per_layer(sequence_parallel, false).norms == layer.norms);
  CHECK(saved_activations_per_layer(sequence_parallel, false).attention == layer.attention);
  Job context_parallel = job;
  context_parallel.parallel.context = 2;
  CHECK(2 * saved_activations_per_layer(context_parallel, false).total() == layer.total());
}

TEST_CASE("micro-batches in flight follow Megatron's warm-up rule") {
  Job job = small_gpt(1, 4);  // 4 micro-batches of each of 2 data-parallel ranks
  CHECK(micro_batches_in_flight(job, 0) == std::vector<std::int64_t>{4});
  CHECK(micro_batches_in_flight(job, 3) == std::vector<std::int64_t>{1});
  job.batch.global = 16;  // only 2
  CHECK(micro_batches_in_flight(job, 0) == std::vector<std::int64_t>{2});
  const Job interleaved = gpt_7b(1, 4, 8, 1);  // last rank: 7 x 4 + 1 = 29 of 32 virtual micro-batches
  CHECK(micro_batches_in_flight(interleaved, 3) == std::vector<std::int64_t>{4, 4, 4, 4, 4, 4, 4, 1});
  CHECK(micro_batches_in_flight(interleaved, 0) == std::vector<std::int64_t>(8, 4));  // 35 wanted, 32 there
}

TEST_CASE("micro-batches in flight: never more than the step has, never fewer on an earlier rank") {
  for (const std::int64_t virtual_pipeline : {1, 2, 3}) {
    for (const std::int64_t micro_batches : {1, 2, 3, 5, 8, 64}) {
      Job job = small_gpt(1, 4, virtual_pipeline);
      job.batch = {.micro = 1, .global = 2 * micro_batches, .sequence = 1024};
      std::int64_t later = 0;
      for (std::int64_t rank = 3; rank >= 0; --rank) {
        const auto alive = micro_batches_in_flight(job, rank);
        CHECK(*std::max_element(alive.begin(), alive.end()) <= micro_batches);
        const std::int64_t sum = std::accumulate(alive.begin(), alive.end(), std::int64_t{0});
        CHECK(sum >= later);
        later = sum;
      }
    }
  }
}

TEST_CASE("recomputation drops what it names") {
  Job job = measured_job(24, 2048);
  const SavedActivations all = saved_activations_per_layer(job, false);
  CHECK(all.scores == 128_MiB);
  job.recompute.granularity = RecomputeGranularity::selective;  // core_attn
  const SavedActivations core = saved_activations_per_layer(job, false);
  CHECK(core.scores == Bytes{0});
  CHECK(core.mlp == all.mlp);
  job.recompute.modules = {"mlp", "layernorm"};
  const SavedActivations modules = saved_activations_per_layer(job, false);
  CHECK(modules.scores == all.scores);
  CHECK(modules.mlp == Bytes{0});
  CHECK(modules.norms == all.norms - 2 * hidden_state_bytes(job));
}

TEST_CASE("full recomputation keeps one input a block, and holds one block again at the turn") {
  Job job = measured_job(24, 2048);
  const Bytes layer = saved_activations_per_layer(job, false).total();
  const StageLayout stage = whole_model(job);
  const Bytes all = saved_activations(job, stage);
  job.recompute.granularity = RecomputeGranularity::full;
  job.recompute.method = "uniform";
  job.recompute.layers = 4;
  CHECK(all - saved_activations(job, stage) == 24 * layer - 6 * hidden_state_bytes(job));
  CHECK(turn_temporaries(job, stage) > 4 * layer);
  job.recompute.method = "block";
  CHECK(all - saved_activations(job, stage) == 4 * layer - 4 * hidden_state_bytes(job));
  job.recompute.layers = 100;  // more than there are
  CHECK(all - saved_activations(job, stage) == 24 * layer - 24 * hidden_state_bytes(job));
}

TEST_CASE("latent attention and experts, by hand") {
  // One layer of DeepSeek-V3: 4096 tokens, hidden 7168, 128 heads, 8 of 256 experts of 2048, one shared expert.
  Job job = small_gpt(1, 1);
  job.model.hidden = 7168;
  job.model.heads = job.model.kv_heads = 128;
  job.model.gated = true;
  job.model.mla = MlaSpec{.q_lora_rank = 1536, .kv_lora_rank = 512};
  job.model.moe = MoeSpec{.experts = 256, .top_k = 8, .ffn = 2048, .shared_ffn = 2048, .first_dense_layers = 3};
  job.batch = {.micro = 1, .global = 8, .sequence = 4096};
  const std::int64_t t = 4096;
  const SavedActivations moe = saved_activations_per_layer(job, true);
  // Compressed vectors before and after their norms, the shared rotary key; q, k of 192 and v of 128 a head; context.
  CHECK(moe.attention.value ==
        2 * t * (2 * (1536 + 512) + 64) + 2 * t * 128 * (192 + 192 + 128) + 2 * t * 128 * 128 + 4 * t * 128);
  CHECK(moe.mlp.value == 2 * t * 3 * 2048);
  CHECK(moe.experts.value == 9 * t * 256 + 8 * t * 2 * (7168 + 3 * 2048));
  job.recompute.granularity = RecomputeGranularity::selective;
  job.recompute.modules = {"moe_act", "mla_up_proj"};
  const SavedActivations less = saved_activations_per_layer(job, true);
  CHECK((moe.experts - less.experts).value == 8 * t * 2 * 2048);
  CHECK((moe.attention - less.attention).value == 2 * t * 128 * (192 + 192 + 128));
}

TEST_CASE("the turn is the loss on the last stage and one layer's gradients elsewhere") {
  const Job job = gpt_7b(1, 4, 8, 1);
  StageLayout stage;
  stage.chunks.resize(8);
  CHECK(turn_temporaries(job, stage) == Bytes{2 * 8192 * 16384} + 2 * hidden_state_bytes(job));
  stage.chunks[7].output = true;
  CHECK(padded_vocabulary(job) == 131200);
  CHECK(turn_temporaries(job, stage) == Bytes{std::int64_t{6} * 8192 * 131200});
}
