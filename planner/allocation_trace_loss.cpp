// The output side of a stage: final norm, logits, cross entropy, prediction layers. Sources: Megatron-LM main
// d98e8a64dd, core/tensor_parallel/cross_entropy.py (works in place on an fp32 copy of the logits and saves it as the
// softmax; autograd casts its gradient back), core/fusions/fused_cross_entropy.py (makes that copy itself),
// core/multi_token_prediction.py; Transformer Engine, cross_entropy.py (leaves the gradient in the logits).
#include <utility>

#include "planner/activations.hpp"
#include "planner/allocation_trace_stage.hpp"

namespace ebb {

Bytes StageTrace::weight_bytes() const {
  return {element() * (padded_vocabulary(job_) / job_.parallel.tensor) * job_.model.hidden};
}

/// The output layer is Megatron-LM's own: rows that sequence parallelism split are gathered into the shared buffer.
void StageTrace::gather_rows() {
  if (job_.parallel.sequence) first_use(FirstUse::shared_buffer, whole_);
}

/// The softmax it leaves, or the logits where they become the gradient.
TraceTensor StageTrace::cross_entropy() {
  gather_rows();
  trace_.term(MemoryTerm::loss);
  const TraceTensor logits = trace_.allocate(logits_);
  first_use(FirstUse::forward_matmul, {});
  trace_.term(MemoryTerm::loss);
  if (!copies_logits()) return logits;
  const TraceTensor softmax = trace_.allocate(Bytes{4 * logits_.value / element()});
  trace_.release(logits);
  return softmax;
}

bool StageTrace::copies_logits() const { return job_.activations.cross_entropy != CrossEntropy::te && element() < 4; }

/// The gradient of the output layer's input; frees that input.
TraceTensor StageTrace::logits_backward(TraceTensor softmax, TraceTensor input) {
  trace_.term(MemoryTerm::loss);
  TraceTensor logits = softmax;
  if (copies_logits()) {
    logits = trace_.allocate(logits_);
    trace_.release(softmax);
  }
  gather_rows();
  trace_.term(MemoryTerm::backward);
  TraceTensor gradient = trace_.allocate(whole_);
  first_use(FirstUse::backward_matmul, {});
  trace_.term(MemoryTerm::backward);
  if (job_.parallel.sequence) {
    const TraceTensor split = trace_.allocate(hidden());
    trace_.release(std::exchange(gradient, split));
  }
  // Fused or not: where it is added in the product, autograd still gets a tensor of its shape, with Transformer Engine
  // at hand a stand-in that stays (core/tensor_parallel/layers.py).
  const bool stands_in = job_.activations.gradient_fusion && job_.compute.attention != Attention::local;
  if (stands_in)
    gradient_stand_in(static_cast<std::uint32_t>(padded_vocabulary(job_) / job_.parallel.tensor), weight_bytes());
  trace_.term(MemoryTerm::backward);
  const TraceTensor weight = stands_in ? TraceTensor{} : trace_.allocate(weight_bytes());
  for (const TraceTensor tensor : {input, logits, weight}) trace_.release(tensor);
  return gradient;
}

void StageTrace::loss_forward(MicroBatch& batch) {
  trace_.term(MemoryTerm::hidden_states);
  batch.normed = trace_.allocate(hidden());
  const std::int64_t statistics = job_.model.norm == Norm::layernorm ? 8 : 4;
  batch.statistics = trace_.allocate(Bytes{hidden().value / element() / job_.model.hidden * statistics});
  batch.softmax = cross_entropy();
}

TraceTensor StageTrace::loss_backward(MicroBatch& batch) {
  const TraceTensor normed = logits_backward(batch.softmax, batch.normed);
  const TraceTensor gradient = trace_.allocate(hidden());
  const TraceTensor weight = trace_.allocate(Bytes{element() * job_.model.hidden});
  for (const TraceTensor tensor : {normed, weight, batch.last, batch.statistics}) trace_.release(tensor);
  return gradient;
}

void StageTrace::predict(const VirtualStage& stage, MicroBatch& batch) {
  const LayerTape& tape = moe_ && job_.model.layer_is_moe(job_.model.layers - 1) ? *moe_ : dense_;
  const bool recomputed = job_.recompute.granularity == RecomputeGranularity::full;
  for (std::int64_t i = 0; i < stage.chunk->mtp_layers; ++i) {
    Prediction& prediction = batch.predictions.emplace_back();
    trace_.term(MemoryTerm::prediction);
    for (TraceTensor& input : prediction.inputs) input = trace_.allocate(hidden());
    prediction.output = layer_forward(tape, trace_.allocate(hidden()), prediction.layer);
    if (recomputed) forget(prediction.layer, false);
    if (stage.chunk->output) prediction.softmax = cross_entropy();
  }
}

void StageTrace::predict_backward(Prediction& prediction) {
  // A stage without the output layer sends its prediction on.
  const bool has_loss = prediction.softmax.valid();
  trace_.term(MemoryTerm::backward);
  const TraceTensor gradient =
      has_loss ? logits_backward(prediction.softmax, prediction.output) : trace_.allocate(hidden());
  if (!has_loss) trace_.release(prediction.output);
  if (job_.recompute.granularity == RecomputeGranularity::full) {
    Layer again;
    trace_.release(layer_forward(*prediction.layer.tape, prediction.layer.tensors[LayerTape::kInput], again));
    prediction.layer = std::move(again);
  }
  layer_backward(prediction.layer);
  for (const TraceTensor input : prediction.inputs) trace_.release(input);
  trace_.release(gradient);
}

}  // namespace ebb
