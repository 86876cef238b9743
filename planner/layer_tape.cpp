// One layer: norm, attention, residual, norm, feed-forward, residual, and the way back. The gradient of the residual
// stream lives in one tensor that each half of the layer adds to.
#include "planner/layer_tape.hpp"

#include <algorithm>
#include <optional>

#include "planner/layer_tape_writer.hpp"

namespace ebb {

LayerSizes::LayerSizes(const Job& job) {
  const ModelSpec& model = job.model;
  element = size_of(job.precision.params);
  width = job.precision.fp8 == Fp8Recipe::none ? element : 1;
  tokens = rank_tokens(job);
  rows = job.parallel.sequence ? tokens / job.parallel.tensor : tokens;
  heads = model.heads / job.parallel.tensor;
  split = element * rows * model.hidden;
  whole = element * tokens * model.hidden;
  gathered = width * tokens * model.hidden;
  if (model.mla) {
    const std::int64_t full = model.mla->qk_head_dim + model.mla->qk_rope_head_dim;
    query = key = element * tokens * full * model.heads / job.parallel.tensor;
    value = context = element * tokens * model.mla->v_head_dim * heads;
  } else {
    query = element * tokens * model.head_dim * model.heads / job.parallel.tensor;
    // Fewer groups than ranks: each rank holds one.
    key = value =
        element * std::max(tokens * model.head_dim * model.kv_heads / job.parallel.tensor, tokens * model.head_dim);
    context = element * tokens * heads * model.head_dim;
  }
  scores = tokens * heads * job.batch.sequence;
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
    const TermScope scope(tape_, MemoryTerm::hidden_states);
    if (tape_.drops("layernorm")) output_ = tape_.allocate(bytes());
    return output_;
  }
  /// Its own gradient is added to the residual's in place.
  void backward(Slot gradient, Slot input) {
    const Slot result = tape_.allocate(sizes_.split);
    tape_.pass(sizes_.element * tape_.job.model.hidden);  // of the weight
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

/// What a half of the layer gives, dropped out and added to the residual stream. Backward masks the gradient.
class ResidualTape {
 public:
  using Slot = LayerTapeWriter::Slot;
  ResidualTape(LayerTapeWriter& tape, const LayerSizes& sizes) : tape_(tape), sizes_(sizes) {}

  void forward(Slot branch, Slot sum) {
    tape_.fill(sum, sizes_.split);
    mask_ = tape_.dropout_mask(sizes_.rows * tape_.job.model.hidden);
    tape_.release(branch);
  }
  /// The gradient of the branch; none where it is the residual's own.
  Slot backward() {
    if (mask_ == LayerTapeWriter::kNoSlot) return mask_;
    const Slot gradient = tape_.allocate(sizes_.split);
    tape_.release(mask_);
    return gradient;
  }

 private:
  LayerTapeWriter& tape_;
  const LayerSizes& sizes_;
  Slot mask_ = LayerTapeWriter::kNoSlot;
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
  NormTape before_feed_forward(writer, sizes, moe ? sizes.element : sizes.width);
  ResidualTape after_attention(writer, sizes);
  ResidualTape after_feed_forward(writer, sizes);
  std::optional<ExpertsTape> experts;
  std::optional<FeedForwardTape> feed_forward;
  if (moe)
    experts.emplace(writer, sizes);
  else
    feed_forward.emplace(dense(writer, sizes));

  writer.term(MemoryTerm::hidden_states);
  before_attention.forward();
  const LayerTape::Slot attended = attention.forward();
  before_attention.forget_output();
  const LayerTape::Slot middle = writer.slot();
  after_attention.forward(attended, middle);
  before_feed_forward.forward();
  const LayerTape::Slot fed = moe ? experts->forward() : feed_forward->forward();
  before_feed_forward.forget_output();
  after_feed_forward.forward(fed, LayerTape::kOutput);

  writer.turn();
  const LayerTape::Slot fed_gradient = after_feed_forward.backward();
  const LayerTape::Slot fed_input = before_feed_forward.output_again();
  before_feed_forward.backward(
      moe ? experts->backward(fed_input, fed_gradient) : feed_forward->backward(fed_input, fed_gradient), middle);
  const LayerTape::Slot attended_gradient = after_attention.backward();
  before_attention.backward(attention.backward(before_attention.output_again(), attended_gradient), LayerTape::kInput);
  return tape;
}

std::vector<LayerTape::Op> live_after(const std::vector<LayerTape::Op>& ops, LayerTape::Slot slots) {
  std::vector<LayerTape::Op> alive(slots);
  for (const LayerTape::Op& op : ops) {
    if (op.kind == LayerTape::Kind::allocate) alive[op.slot] = op;
    if (op.kind == LayerTape::Kind::release) alive[op.slot] = {};
  }
  return alive;
}

}  // namespace ebb
