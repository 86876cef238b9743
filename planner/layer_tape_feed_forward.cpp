// The feed-forward half of a layer: two matrix products with an activation between, dense or for routed experts.
#include "planner/layer_tape_writer.hpp"

namespace ebb {

FeedForwardTape::Slot FeedForwardTape::forward() {
  if (shape_.columns == 0) return kNoSlot;
  const Slot output = run();
  if (shape_.drops_all) tape_.release(up_, gate_, linear_, active_);
  if (!shape_.drops_all && shape_.drops_product) tape_.release(active_);
  return output;
}

FeedForwardTape::Slot FeedForwardTape::run() {
  const Slot input = shape_.grouped ? kNoSlot : tape_.gathered(sizes_.gathered);
  if (shape_.grouped) tape_.first_use(FirstUse::grouped_matmul, std::int64_t{160} << 20);
  up_ = tape_.matmul(column_bytes_ * gates());
  tape_.release(input);
  if (tape_.is_local() && tape_.job.model.gated) {
    gate_ = tape_.allocate(column_bytes_);
    linear_ = tape_.allocate(column_bytes_);
  }
  active_ = product();
  return result();
}

/// The activation's output; an fp8 product saves it quantised.
FeedForwardTape::Slot FeedForwardTape::product() {
  const Slot exact = tape_.allocate(column_bytes_);
  if (sizes_.width == 2) return exact;
  const Slot quantized = tape_.allocate(column_bytes_ / 2);
  tape_.release(exact);
  return quantized;
}

/// A product with the second weight, or backward with the first one transposed.
FeedForwardTape::Slot FeedForwardTape::result() {
  if (shape_.grouped) return tape_.matmul(2 * shape_.rows * shape_.width);
  return tape_.row_parallel(sizes_.whole, sizes_.split);
}

FeedForwardTape::Slot FeedForwardTape::backward(Slot input, Slot gradient) {
  if (shape_.columns == 0) return kNoSlot;
  const std::int64_t weight = shape_.weights * shape_.columns * shape_.width;
  if (shape_.drops_all)
    tape_.release(run());
  else if (shape_.drops_product)
    active_ = product();
  const Slot rows = shape_.grouped ? kNoSlot : tape_.gathered(sizes_.whole);
  const Slot active = tape_.matmul(column_bytes_);
  tape_.weight_gradient(weight);
  tape_.release(active_, rows, gradient);
  const Slot up = activation_backward(active);
  const Slot input_rows = shape_.grouped ? kNoSlot : tape_.gathered(sizes_.gathered);
  const Slot input_gradient = result();
  tape_.weight_gradient(weight * gates());
  tape_.release(input, up, input_rows);
  return input_gradient;
}

/// Unfused, both halves have a gradient of their own before they are put side by side.
FeedForwardTape::Slot FeedForwardTape::activation_backward(Slot gradient) {
  if (!tape_.is_local() || !tape_.job.model.gated) {
    const Slot up = tape_.allocate(column_bytes_ * gates());
    tape_.release(gradient, up_);
    return up;
  }
  const Slot gate = tape_.allocate(column_bytes_);
  const Slot linear = tape_.allocate(column_bytes_);
  tape_.release(gradient, gate_, linear_);
  const Slot inner = tape_.allocate(column_bytes_);
  tape_.release(gate, up_);
  const Slot up = tape_.allocate(2 * column_bytes_);
  tape_.release(inner, linear);
  return up;
}

namespace {

FeedForwardTape::Shape expert_shape(const LayerTapeWriter& tape, std::int64_t routed, std::int64_t width) {
  const Job& job = tape.job;
  const std::int64_t local = std::max<std::int64_t>(job.model.moe->experts / job.parallel.expert, 1);
  return {.rows = routed,
          .columns = job.model.moe->ffn / job.parallel.expert_tensor,
          .width = width,
          .grouped = true,
          .weights = local,
          .drops_all = tape.drops("moe"),
          .drops_product = tape.drops("moe_act")};
}

FeedForwardTape::Shape shared_shape(const LayerTapeWriter& tape, const LayerSizes& sizes) {
  return {.rows = sizes.tokens,
          .columns = tape.job.model.moe->shared_ffn / tape.job.parallel.tensor,
          .width = tape.job.model.hidden,
          .drops_all = tape.drops("shared_experts") || tape.drops("moe")};
}

}  // namespace

ExpertsTape::ExpertsTape(LayerTapeWriter& tape, const LayerSizes& sizes)
    : tape_(tape),
      sizes_(sizes),
      spec_(*tape.job.model.moe),
      width_(spec_.latent > 0 ? spec_.latent : tape.job.model.hidden),
      routed_(sizes.rows * spec_.top_k * tape.job.parallel.expert_tensor),
      experts_(tape, sizes, expert_shape(tape, routed_, width_)),
      shared_(tape, sizes, shared_shape(tape, sizes)) {}

ExpertsTape::Slot ExpertsTape::forward() {
  route();
  const Slot output = combine(experts_.forward());
  tape_.release(shared_.forward());
  if (tape_.drops("moe")) tape_.release(logits_, probabilities_, map_, permuted_, latent_);
  return output;
}

/// Which expert gets which token, and the tokens in the order of their experts.
void ExpertsTape::route() {
  logits_ = tape_.allocate(4 * sizes_.rows * spec_.experts);
  probabilities_ = tape_.allocate(4 * sizes_.rows * spec_.experts);
  map_ = tape_.allocate(sizes_.rows * spec_.experts);
  const Slot sent = tape_.allocate(2 * sizes_.rows * spec_.top_k * width_);
  const Slot received = tape_.allocate(2 * routed_ * width_);
  tape_.release(sent);
  permuted_ = received;
  if (sizes_.width == 2) return;
  permuted_ = tape_.allocate(routed_ * width_);
  tape_.release(received);
}

ExpertsTape::Slot ExpertsTape::combine(Slot output) {
  const Slot returned = tape_.allocate(2 * sizes_.rows * spec_.top_k * width_);
  tape_.release(output);
  const Slot sum = tape_.allocate(2 * sizes_.rows * width_);
  tape_.release(returned);
  if (spec_.latent == 0) return sum;
  latent_ = tape_.allocate(sizes_.width * sizes_.rows * spec_.latent);
  const Slot hidden = tape_.matmul(sizes_.split);
  tape_.release(sum);
  return hidden;
}

ExpertsTape::Slot ExpertsTape::backward(Slot input) {
  if (tape_.drops("moe")) {
    route();
    if (spec_.latent > 0) latent_ = tape_.allocate(sizes_.width * sizes_.rows * spec_.latent);
  }
  tape_.release(latent_);
  const Slot sent = tape_.allocate(2 * sizes_.rows * spec_.top_k * width_);
  const Slot received = tape_.allocate(2 * routed_ * width_);
  tape_.release(sent);
  const Slot permuted = experts_.backward(permuted_, received);
  const Slot returned = tape_.allocate(2 * sizes_.rows * spec_.top_k * width_);
  tape_.release(permuted);
  const Slot gradient = tape_.allocate(sizes_.split);
  tape_.release(returned, logits_, probabilities_, map_);
  tape_.release(shared_.backward(kNoSlot, kNoSlot), input);
  return gradient;
}

}  // namespace ebb
