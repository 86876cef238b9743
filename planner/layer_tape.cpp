// One layer: norm, attention, residual, norm, feed-forward, residual, and the way back. The gradient of the residual
// stream lives in one tensor that each half of the layer adds to.
#include "planner/layer_tape.hpp"

#include <algorithm>
#include <optional>

#include "planner/layer_tape_writer.hpp"

namespace ebb {

LayerSizes::LayerSizes(const Job& job) {
  const ModelSpec& model = job.model;
  width = job.precision.fp8 == Fp8Recipe::none ? 2 : 1;
  tokens = rank_tokens(job);
  rows = job.parallel.sequence ? tokens / job.parallel.tensor : tokens;
  heads = model.heads / job.parallel.tensor;
  split = 2 * rows * model.hidden;
  whole = 2 * tokens * model.hidden;
  gathered = width * tokens * model.hidden;
  if (model.mla) {
    const std::int64_t full = model.mla->qk_head_dim + model.mla->qk_rope_head_dim;
    query = key = 2 * tokens * full * model.heads / job.parallel.tensor;
    value = context = 2 * tokens * model.mla->v_head_dim * heads;
  } else {
    query = 2 * tokens * model.head_dim * model.heads / job.parallel.tensor;
    // Fewer groups than ranks: each rank holds one.
    key = value = 2 * std::max(tokens * model.head_dim * model.kv_heads / job.parallel.tensor, tokens * model.head_dim);
    context = 2 * tokens * heads * model.head_dim;
  }
  scores = 2 * job.batch.micro * heads * job.batch.sequence * job.batch.sequence;
}

namespace {

class NormTape {
 public:
  using Slot = LayerTapeWriter::Slot;
  NormTape(LayerTapeWriter& tape, const LayerSizes& sizes, std::int64_t width)
      : tape_(tape), sizes_(sizes), width_(width) {}

  void forward() {
    output_ = tape_.allocate(bytes());
    for (Slot& statistic : statistics_) {
      statistic = tape_.allocate(4 * sizes_.rows);
      if (tape_.job.model.norm == Norm::rmsnorm) break;
    }
  }
  void forget_output() {
    if (tape_.drops("layernorm")) tape_.release(output_);
  }
  /// Recomputed where it was forgotten.
  Slot output_again() {
    if (tape_.drops("layernorm")) output_ = tape_.allocate(bytes());
    return output_;
  }
  /// Its own gradient is added to the residual's in place.
  void backward(Slot gradient, Slot input) {
    const Slot result = tape_.allocate(sizes_.split);
    tape_.pass(2 * tape_.job.model.hidden);  // of the weight
    tape_.release(gradient, input, statistics_[0], statistics_[1], result);
  }

 private:
  std::int64_t bytes() const { return width_ * sizes_.rows * tape_.job.model.hidden; }

  LayerTapeWriter& tape_;
  const LayerSizes& sizes_;
  std::int64_t width_;
  Slot output_ = LayerTapeWriter::kNoSlot;
  Slot statistics_[2] = {LayerTapeWriter::kNoSlot, LayerTapeWriter::kNoSlot};
};

FeedForwardTape dense(LayerTapeWriter& tape, const LayerSizes& sizes) {
  const Job& job = tape.job;
  return {tape,
          sizes,
          {.rows = sizes.tokens,
           .columns = job.model.ffn / job.parallel.tensor,
           .width = job.model.hidden,
           .drops_all = tape.drops("mlp")}};
}

}  // namespace

LayerTape layer_tape(const Job& job, bool moe) {
  LayerTape tape;
  LayerTapeWriter writer(job, tape);
  const LayerSizes sizes(job);
  AttentionTape attention(writer, sizes);
  NormTape before_attention(writer, sizes, sizes.width);
  NormTape before_feed_forward(writer, sizes, moe ? 2 : sizes.width);
  std::optional<ExpertsTape> experts;
  std::optional<FeedForwardTape> feed_forward;
  if (moe)
    experts.emplace(writer, sizes);
  else
    feed_forward.emplace(dense(writer, sizes));

  before_attention.forward();
  const LayerTape::Slot attended = attention.forward();
  before_attention.forget_output();
  const LayerTape::Slot middle = writer.allocate(sizes.split);
  writer.release(attended);
  before_feed_forward.forward();
  const LayerTape::Slot fed = moe ? experts->forward() : feed_forward->forward();
  before_feed_forward.forget_output();
  writer.fill(LayerTape::kOutput, sizes.split);
  writer.release(fed);

  writer.turn();
  const LayerTape::Slot fed_input = before_feed_forward.output_again();
  before_feed_forward.backward(
      moe ? experts->backward(fed_input) : feed_forward->backward(fed_input, LayerTapeWriter::kNoSlot), middle);
  before_attention.backward(attention.backward(before_attention.output_again()), LayerTape::kInput);
  return tape;
}

Bytes saved_bytes(const LayerTape& tape, Bytes input) {
  std::vector<Bytes> alive(tape.slots, Bytes{0});
  alive[LayerTape::kInput] = input;
  for (const LayerTape::Op& op : tape.forward) {
    if (op.kind == LayerTape::Kind::allocate) alive[op.slot] = op.bytes;
    if (op.kind == LayerTape::Kind::release) alive[op.slot] = Bytes{0};
  }
  alive[LayerTape::kOutput] = Bytes{0};
  Bytes sum{0};
  for (const Bytes bytes : alive) sum += bytes;
  return sum;
}

}  // namespace ebb
