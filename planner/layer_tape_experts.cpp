// A mixture of experts: router, dispatch of the tokens, routed and shared experts, and the way back.
// Sources: Megatron-LM main d98e8a64dd, core/transformer/moe/{router,token_dispatcher,moe_utils,experts}.py.
#include <algorithm>
#include <cmath>

#include "planner/layer_tape_writer.hpp"

namespace ebb {

namespace {

FeedForwardTape::Shape expert_shape(const LayerTapeWriter& tape, std::int64_t rows, std::int64_t width) {
  const Job& job = tape.job;
  const bool grouped = job.experts.grouped_matmul && !tape.is_local();
  const std::int64_t local = std::max<std::int64_t>(job.model.moe->experts / job.parallel.expert, 1);
  return {.rows = rows,
          .columns = job.model.moe->ffn / job.parallel.expert_tensor,
          .width = width,
          .experts = true,
          .grouped = grouped,
          .weights = grouped ? local : 1,
          // The fused kernel of a gated activation multiplies by the router's weight as well.
          .weighs = !job.model.gated || !job.activations.bias_fusion,
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

/// Balanced, times the imbalance of the fullest rank; the capacity factor cuts off what is over it, or fills up to it.
RoutedRows::RoutedRows(const Job& job, std::int64_t tokens) {
  const MoeSpec& spec = *job.model.moe;
  const RoutingSettings& routing = job.experts;
  sent = tokens * spec.top_k;
  double part = routing.imbalance;
  if (routing.capacity_factor) {
    const double most =
        std::ceil(static_cast<double>(sent) / static_cast<double>(spec.experts) * *routing.capacity_factor) *
        static_cast<double>(spec.experts);
    const double of_sent = most / static_cast<double>(sent);
    part = routing.pad_to_capacity ? of_sent : std::min(part, of_sent);
    if (routing.pad_to_capacity) sent = static_cast<std::int64_t>(most);
    if (routing.pad_to_capacity) part = 1;
  }
  received = std::llround(part * static_cast<double>(sent)) * job.parallel.expert_tensor;
}

ExpertsTape::ExpertsTape(LayerTapeWriter& tape, const LayerSizes& sizes)
    : tape_(tape),
      sizes_(sizes),
      spec_(*tape.job.model.moe),
      width_(spec_.latent > 0 ? spec_.latent : tape.job.model.hidden),
      routed_(tape.job, sizes.rows),
      experts_(tape, sizes, expert_shape(tape, routed_.received, width_)),
      shared_(tape, sizes, shared_shape(tape, sizes)) {}

ExpertsTape::Slot ExpertsTape::forward() {
  const Slot shared = shared_.forward();
  const TermScope scope(tape_, MemoryTerm::experts);
  route();
  dispatch();
  const Slot output = combine(experts_.forward());
  if (tape_.drops("moe")) tape_.release(logits_, probabilities_, map_, order_, weights_, permuted_, latent_);
  if (shared == kNoSlot) return output;
  const Slot sum = tape_.allocate(sizes_.split);
  tape_.release(output, shared);
  return sum;
}

/// Which expert gets which token: logits and probabilities in fp32, and a map of booleans.
void ExpertsTape::route() {
  logits_ = tape_.allocate(4 * sizes_.rows * spec_.experts);
  probabilities_ = tape_.allocate(4 * sizes_.rows * spec_.experts);
  map_ = tape_.allocate(sizes_.rows * spec_.experts);
}

/// The tokens in the order of their experts, on the ranks of these. Permuting keeps that order, not the tokens: the
/// fused kernel as a table of int32 by token and expert, otherwise an int64 for each row.
void ExpertsTape::dispatch() {
  const Job& job = tape_.job;
  const std::int64_t row = sizes_.element * width_;
  Slot received = kNoSlot;
  if (job.experts.dispatcher == Dispatcher::allgather) {
    const std::int64_t all = sizes_.rows * job.parallel.expert * job.parallel.expert_tensor;
    if (all > sizes_.rows) tape_.first_use(FirstUse::shared_buffer, all * row);
    received = tape_.allocate(routed_.received * row);
  } else {
    const Slot sent = tape_.allocate(routed_.sent * row);
    received = tape_.allocate(routed_.received * row);
    tape_.release(sent);
    if (spec_.experts > job.parallel.expert) {  // several experts here: sorted by them
      const Slot sorted = tape_.allocate(routed_.received * row);
      tape_.release(received);
      received = sorted;
    }
  }
  order_ = tape_.allocate(job.experts.permute_fusion ? 4 * sizes_.rows * (2 * spec_.experts + 1) : 8 * routed_.sent);
  weights_ = tape_.allocate(4 * routed_.received);
  permuted_ = received;
  if (sizes_.width == sizes_.element) return;
  permuted_ = tape_.allocate(routed_.received * width_);
  tape_.release(received);
}

ExpertsTape::Slot ExpertsTape::combine(Slot output) {
  const std::int64_t row = sizes_.element * width_;
  const std::int64_t ranks = tape_.job.parallel.expert * tape_.job.parallel.expert_tensor;
  const bool gathers = tape_.job.experts.dispatcher == Dispatcher::allgather;
  const Slot returned = tape_.allocate((gathers ? sizes_.rows * ranks : routed_.sent) * row);
  tape_.release(output);
  Slot sum = returned;
  if (!gathers || ranks > 1) {
    sum = tape_.allocate(sizes_.rows * row);
    tape_.release(returned);
  }
  if (spec_.latent == 0) return sum;
  latent_ = tape_.allocate(sizes_.width * sizes_.rows * spec_.latent);
  const Slot hidden = tape_.matmul(sizes_.split);
  tape_.release(sum);
  return hidden;
}

/// The gradient of what the experts gave.
ExpertsTape::Slot ExpertsTape::combine_backward() {
  const std::int64_t row = sizes_.element * width_;
  const std::int64_t ranks = tape_.job.parallel.expert * tape_.job.parallel.expert_tensor;
  const bool gathers = tape_.job.experts.dispatcher == Dispatcher::allgather;
  tape_.release(latent_);
  const Slot sent = tape_.allocate((gathers ? sizes_.rows * ranks : routed_.sent) * row);
  const Slot received = tape_.allocate(routed_.received * row);
  tape_.release(sent);
  return received;
}

/// The gradient of the tokens before they were sent.
ExpertsTape::Slot ExpertsTape::dispatch_backward(Slot permuted) {
  const std::int64_t row = sizes_.element * width_;
  const std::int64_t ranks = tape_.job.parallel.expert * tape_.job.parallel.expert_tensor;
  const bool gathers = tape_.job.experts.dispatcher == Dispatcher::allgather;
  const Slot returned = tape_.allocate((gathers ? sizes_.rows * ranks : routed_.sent) * row);
  tape_.release(permuted);
  const Slot gradient = tape_.allocate(sizes_.split);
  tape_.release(returned);
  return gradient;
}

ExpertsTape::Slot ExpertsTape::backward(Slot input, Slot gradient) {
  if (tape_.drops("moe")) {
    const TermScope scope(tape_, MemoryTerm::experts);
    route();
    dispatch();
    if (spec_.latent > 0) latent_ = tape_.allocate(sizes_.width * sizes_.rows * spec_.latent);
  }
  const Slot received = combine_backward();
  const Slot permuted = experts_.backward(permuted_, received);
  const Slot result = dispatch_backward(permuted);
  tape_.release(logits_, probabilities_, map_, order_, weights_);
  tape_.release(shared_.backward(kNoSlot, kNoSlot), input, gradient);
  return result;
}

}  // namespace ebb
