// The output side of a stage: final norm, logits, cross entropy, prediction layers. Source: Megatron-LM main
// d98e8a64dd, core/tensor_parallel/cross_entropy.py (works in place on an fp32 copy of the logits and saves it as the
// softmax; autograd casts its gradient back to bf16), core/transformer/multi_token_prediction.py.
#include <utility>

#include "planner/activations.hpp"
#include "planner/allocation_trace_stage.hpp"

namespace ebb {

Bytes StageTrace::weight_bytes() const {
  return {2 * (padded_vocabulary(job_) / job_.parallel.tensor) * job_.model.hidden};
}

/// The softmax it leaves.
TraceTensor StageTrace::cross_entropy() {
  const TraceTensor rows = job_.parallel.sequence ? trace_.allocate(whole_) : TraceTensor{};
  const TraceTensor logits = trace_.allocate(logits_);
  first_use(FirstUse::forward_matmul, {});
  trace_.release(rows);
  const TraceTensor softmax = trace_.allocate(2 * logits_);
  trace_.release(logits);
  return softmax;
}

/// The gradient of the output layer's input; frees that input.
TraceTensor StageTrace::logits_backward(TraceTensor softmax, TraceTensor input) {
  const TraceTensor logits = trace_.allocate(logits_);
  trace_.release(softmax);
  const TraceTensor rows = job_.parallel.sequence ? trace_.allocate(whole_) : TraceTensor{};
  TraceTensor gradient = trace_.allocate(whole_);
  first_use(FirstUse::backward_matmul, {});
  if (job_.parallel.sequence) {
    const TraceTensor split = trace_.allocate(hidden());
    trace_.release(std::exchange(gradient, split));
  }
  const bool local = job_.compute.attention == Attention::local;
  const TraceTensor weight = local ? trace_.allocate(weight_bytes()) : TraceTensor{};
  for (const TraceTensor tensor : {input, logits, weight, rows}) trace_.release(tensor);
  return gradient;
}

void StageTrace::loss_forward(MicroBatch& batch) {
  batch.normed = trace_.allocate(hidden());
  batch.statistics = trace_.allocate(Bytes{hidden().value / job_.model.hidden * 2});
  batch.softmax = cross_entropy();
}

TraceTensor StageTrace::loss_backward(MicroBatch& batch) {
  const TraceTensor normed = logits_backward(batch.softmax, batch.normed);
  const TraceTensor gradient = trace_.allocate(hidden());
  const TraceTensor weight = trace_.allocate(Bytes{2 * job_.model.hidden});
  for (const TraceTensor tensor : {normed, weight, batch.last, batch.statistics}) trace_.release(tensor);
  return gradient;
}

void StageTrace::predict(const VirtualStage& stage, MicroBatch& batch) {
  const LayerTape& tape = moe_ && job_.model.layer_is_moe(job_.model.layers - 1) ? *moe_ : dense_;
  const bool recomputed = job_.recompute.granularity == RecomputeGranularity::full;
  for (std::int64_t i = 0; i < stage.chunk->mtp_layers; ++i) {
    Prediction& prediction = batch.predictions.emplace_back();
    for (TraceTensor& input : prediction.inputs) input = trace_.allocate(hidden());
    prediction.output = layer_forward(tape, trace_.allocate(hidden()), prediction.layer);
    if (recomputed) forget(prediction.layer, false);
    if (stage.chunk->output) prediction.softmax = cross_entropy();
  }
}

void StageTrace::predict_backward(Prediction& prediction) {
  // A stage without the output layer sends its prediction on.
  const bool has_loss = prediction.softmax.valid();
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
