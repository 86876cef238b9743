// The feed-forward half of a layer: two matrix products with an activation between, dense or for routed experts.
#include "planner/layer_tape_writer.hpp"

namespace ebb {

FeedForwardTape::Slot FeedForwardTape::forward() {
  if (shape_.columns == 0) return kNoSlot;
  const TermScope scope(tape_, term());
  const Slot output = run();
  if (shape_.drops_all) tape_.release(up_, gate_, linear_, plain_, active_);
  if (!shape_.drops_all && shape_.drops_product) tape_.release(gate_, linear_, plain_, active_);
  return output;
}

FeedForwardTape::Slot FeedForwardTape::run() {
  const Slot input = shape_.experts ? kNoSlot : tape_.gathered(sizes_.gathered);
  if (shape_.grouped) tape_.first_use(FirstUse::grouped_matmul, std::int64_t{160} << 20);
  up_ = tape_.matmul(column_bytes_ * gates());
  tape_.release(input);
  active_ = activate();
  return result();
}

/// The activation's output, times the router's weight where that is a step of its own; an fp8 product saves it
/// quantised. Unfused and gated, the linear half is a tensor too: an offset of 0 is added to it.
FeedForwardTape::Slot FeedForwardTape::activate() {
  if (unfused_gate()) {
    gate_ = tape_.allocate(column_bytes_);
    linear_ = tape_.allocate(column_bytes_);
  }
  if (shape_.weighs) plain_ = tape_.allocate(column_bytes_);
  const Slot exact = tape_.allocate(column_bytes_);
  if (sizes_.width == sizes_.element) return exact;
  const Slot quantized = tape_.allocate(column_bytes_ / sizes_.element);
  tape_.release(exact);
  return quantized;
}

/// A product with the second weight, or backward with the first one transposed.
FeedForwardTape::Slot FeedForwardTape::result() {
  if (shape_.experts) return tape_.matmul(sizes_.element * shape_.rows * shape_.width);
  return tape_.row_parallel(sizes_.whole, sizes_.split);
}

FeedForwardTape::Slot FeedForwardTape::backward(Slot input, Slot gradient) {
  if (shape_.columns == 0) return kNoSlot;
  if (shape_.drops_all) {
    const TermScope scope(tape_, term());
    tape_.release(run());
  } else if (shape_.drops_product) {
    const TermScope scope(tape_, term());
    active_ = activate();
  }
  const Slot rows = shape_.experts ? kNoSlot : tape_.gathered(sizes_.whole);
  const Slot active = tape_.matmul(column_bytes_);
  tape_.weight_gradient(shape_.width, shape_.columns, shape_.weights);
  tape_.release(active_, rows, gradient);
  const Slot up = activation_backward(active);
  const Slot input_rows = shape_.experts ? kNoSlot : tape_.gathered(sizes_.gathered);
  const Slot input_gradient = result();
  tape_.weight_gradient(shape_.columns * gates(), shape_.width, shape_.weights);
  tape_.release(input, up, input_rows);
  return input_gradient;
}

/// Unfused, both halves have a gradient of their own before they are put side by side.
FeedForwardTape::Slot FeedForwardTape::activation_backward(Slot gradient) {
  if (shape_.weighs) {
    const Slot plain = tape_.allocate(column_bytes_);
    tape_.release(gradient, plain_);
    gradient = plain;
  }
  if (!unfused_gate()) {
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

}  // namespace ebb
