// The pipeline schedule and one micro-batch of one virtual stage. Source: Megatron-LM main d98e8a64dd,
// core/pipeline_parallel/schedules.py (warm-up, one forward one backward, cool-down; interleaved by groups of PP
// micro-batches), core/transformer/transformer_block.py (recomputation), core/models/gpt/gpt_model.py.
#include "planner/allocation_trace_stage.hpp"

#include <algorithm>
#include <utility>

#include "planner/activations.hpp"
#include "planner/workspaces.hpp"

namespace ebb {

namespace {

/// What the host needs to enqueue the operations of eager forward, for each tensor that they allocate. Measured: two
/// H200 hosts, torch 2.11, 24 layers of the measured job's shape written out in Python: 18 to 38 us a step, median 23
/// (tests/data/measured/h200-eager-forward.jsonl).
constexpr double kEnqueueSeconds = 23e-6;

std::int64_t allocations_of(const std::vector<LayerTape::Op>& ops) {
  return std::count_if(ops.begin(), ops.end(),
                       [](const LayerTape::Op& op) { return op.kind == LayerTape::Kind::allocate; });
}

/// Micro-batches that a step of the trace has: enough to fill the pipeline, and two more. Those in between repeat.
std::int64_t traced_micro_batches(const Job& job) {
  const std::int64_t stages = job.parallel.pipeline;
  const std::int64_t enough = job.parallel.virtual_pipeline > 1 ? 2 * stages : stages + 2;
  return std::clamp<std::int64_t>(job.micro_batches(), 1, enough);
}

std::int64_t warm_up(const Job& job, std::int64_t rank, std::int64_t visits) {
  const std::int64_t stages = job.parallel.pipeline;
  const std::int64_t virtual_stages = job.parallel.virtual_pipeline;
  const std::int64_t ahead =
      virtual_stages == 1 ? stages - rank - 1 : 2 * (stages - rank - 1) + (virtual_stages - 1) * stages;
  return std::min(ahead, visits);
}

/// Virtual stages in the order in which forward visits them.
std::vector<std::size_t> visits_of(const Job& job, std::int64_t micro_batches) {
  std::vector<std::size_t> visits;
  for (std::int64_t done = 0; done < micro_batches; done += job.parallel.pipeline)
    for (std::int64_t stage = 0; stage < job.parallel.virtual_pipeline; ++stage)
      visits.insert(visits.end(), std::min(job.parallel.pipeline, micro_batches - done),
                    static_cast<std::size_t>(stage));
  return visits;
}

}  // namespace

StageTrace::StageTrace(TraceBuilder& trace, const RankModel& rank)
    : trace_(trace), rank_(rank), job_(*rank.job), dense_(layer_tape(job_, false)) {
  if (job_.model.moe) moe_ = layer_tape(job_, true);
  whole_ = Bytes{2 * rank_tokens(job_) * job_.model.hidden};
  logits_ = Bytes{2 * rank_tokens(job_) * (padded_vocabulary(job_) / job_.parallel.tensor)};
  const Recompute& recompute = job_.recompute;
  std::size_t layers = 0;
  for (const ModelChunk& chunk : rank.stage->chunks) {
    VirtualStage stage;
    stage.chunk = &chunk;
    for (const std::int64_t layer : chunk.decoder_layers)
      stage.layers.push_back(job_.model.layer_is_moe(layer) ? &*moe_ : &dense_);
    const auto n = static_cast<std::size_t>(std::max<std::int64_t>(recompute.layers, 1));
    if (recompute.granularity == RecomputeGranularity::full) {
      const bool by_block = recompute.method == "block";
      stage.whole_from = by_block ? std::min(n, stage.layers.size()) : stage.layers.size();
      stage.recomputed_by = by_block ? 1 : n;
    }
    layers += stage.layers.size();
    stages_.push_back(std::move(stage));
  }
  const double visits = static_cast<double>(std::max<std::size_t>(layers, 1)) *
                        static_cast<double>(std::max<std::int64_t>(job_.micro_batches(), 1));
  layer_forward_ = Seconds{rank.compute.forward.value / visits};
  layer_backward_ = Seconds{rank.compute.backward.value / visits};
}

void StageTrace::run() {
  const std::vector<std::size_t> visits = visits_of(job_, traced_micro_batches(job_));
  const auto ahead =
      static_cast<std::size_t>(warm_up(job_, rank_.stage->pipeline_rank, static_cast<std::int64_t>(visits.size())));
  for (std::size_t k = 0; k < ahead; ++k) forward(stages_[visits[k]]);
  for (std::size_t k = 0; k < visits.size(); ++k) {
    if (k + ahead < visits.size()) forward(stages_[visits[k + ahead]]);
    backward(stages_[stages_.size() - 1 - visits[k]]);
  }
}

void StageTrace::play(const std::vector<LayerTape::Op>& ops, std::vector<TraceTensor>& tensors) {
  for (const LayerTape::Op& op : ops) {
    switch (op.kind) {
      case LayerTape::Kind::allocate:
        trace_.term(op.term);
        tensors[op.slot] = trace_.allocate(op.bytes);
        break;
      case LayerTape::Kind::release:
        trace_.release(std::exchange(tensors[op.slot], TraceTensor{}));
        break;
      case LayerTape::Kind::first_use:
        first_use(static_cast<FirstUse>(op.slot), op.bytes);
        break;
    }
  }
}

void StageTrace::first_use(FirstUse what, Bytes bytes) {
  if (std::exchange(in_use_[static_cast<std::size_t>(what)], true)) return;
  if (what == FirstUse::score_buffer) return trace_.allocate(trace_.keep(), bytes);
  trace_.term(MemoryTerm::workspaces);
  for (const Bytes workspace : workspaces_of(job_, what)) trace_.allocate(trace_.keep(), workspace);
}

TraceTensor StageTrace::layer_forward(const LayerTape& tape, TraceTensor input, Layer& layer) {
  const Seconds enqueued{kEnqueueSeconds * static_cast<double>(allocations_of(tape.forward))};
  const Seconds host = std::min(enqueued, layer_forward_);
  trace_.advance(host);
  lead_ += layer_forward_ - host;
  layer.tape = &tape;
  layer.tensors.assign(tape.slots, TraceTensor{});
  layer.tensors[LayerTape::kInput] = input;
  play(tape.forward, layer.tensors);
  return std::exchange(layer.tensors[LayerTape::kOutput], TraceTensor{});
}

void StageTrace::layer_backward(Layer& layer) {
  trace_.advance(layer_backward_);
  play(layer.tape->backward, layer.tensors);
}

/// Releases what a layer saved. The input only if told so.
void StageTrace::forget(Layer& layer, bool input) {
  for (std::size_t slot = input ? 0 : 1; slot < layer.tensors.size(); ++slot) trace_.release(layer.tensors[slot]);
}

/// A recomputed block keeps its input.
TraceTensor StageTrace::block_forward(const VirtualStage& stage, std::size_t first, MicroBatch& batch,
                                      TraceTensor input) {
  batch.inputs.push_back(input);
  const std::size_t end = std::min(first + stage.recomputed_by, stage.whole_from);
  Layer layer;
  for (std::size_t i = first; i < end; ++i) {
    input = layer_forward(*stage.layers[i], input, layer);
    forget(layer, i > first);
  }
  return input;
}

void StageTrace::block_backward(const VirtualStage& stage, std::size_t first, TraceTensor input) {
  const std::size_t end = std::min(first + stage.recomputed_by, stage.whole_from);
  std::vector<Layer> layers(end - first);
  for (std::size_t i = first; i < end; ++i) input = layer_forward(*stage.layers[i], input, layers[i - first]);
  trace_.release(input);  // the block's output
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) layer_backward(*layer);
}

/// Embedding, or hidden states from the stage before.
TraceTensor StageTrace::first_input(const VirtualStage& stage, MicroBatch& batch) {
  if (stage.chunk->embedding || stage.chunk->output)
    for (TraceTensor& data : batch.data) data = trace_.allocate(Bytes{8 * rank_tokens(job_)});
  const std::int64_t s = job_.batch.sequence;
  if (in_flight_++ == 0 && job_.compute.attention == Attention::local)
    mask_ = trace_.allocate(Bytes{job_.batch.micro * s * s});
  if (!std::exchange(has_angles_, true) && job_.model.positions == Positions::rope)
    trace_.allocate(trace_.keep(), Bytes{4 * s * job_.model.head_dim});
  if (!stage.chunk->embedding || !job_.parallel.sequence) return trace_.allocate(hidden());
  const TraceTensor whole = trace_.allocate(whole_);
  const TraceTensor split = trace_.allocate(hidden());
  trace_.release(whole);
  return split;
}

void StageTrace::forward(VirtualStage& stage) {
  trace_.mark(Phase::forward);
  MicroBatch& batch = stage.alive.emplace_back();
  TraceTensor hidden = first_input(stage, batch);
  for (std::size_t i = 0; i < stage.whole_from; i += stage.recomputed_by)
    hidden = block_forward(stage, i, batch, hidden);
  batch.layers.resize(stage.layers.size() - stage.whole_from);
  for (std::size_t i = stage.whole_from; i < stage.layers.size(); ++i)
    hidden = layer_forward(*stage.layers[i], hidden, batch.layers[i - stage.whole_from]);
  if (stage.chunk->mtp_layers > 0) predict(stage, batch);
  batch.last = hidden;
  trace_.advance(std::exchange(lead_, Seconds{0}));
  if (stage.chunk->output)
    loss_forward(batch);
  else
    trace_.release(std::exchange(batch.last, TraceTensor{}));  // sent on
}

void StageTrace::backward(VirtualStage& stage) {
  EBB_ASSERT(!stage.alive.empty());
  trace_.mark(Phase::backward);
  MicroBatch batch = std::move(stage.alive.front());
  stage.alive.pop_front();
  // What the next stage sends stays until backward has ended.
  const TraceTensor received = stage.chunk->output ? TraceTensor{} : trace_.allocate(hidden());
  const TraceTensor gradient = stage.chunk->output ? loss_backward(batch) : trace_.allocate(hidden());
  for (auto prediction = batch.predictions.rbegin(); prediction != batch.predictions.rend(); ++prediction)
    predict_backward(*prediction);
  for (auto layer = batch.layers.rbegin(); layer != batch.layers.rend(); ++layer) layer_backward(*layer);
  for (std::size_t block = batch.inputs.size(); block-- > 0;)
    block_backward(stage, block * stage.recomputed_by, batch.inputs[block]);
  if (stage.chunk->embedding) {
    const TraceTensor weight = trace_.allocate(weight_bytes());
    trace_.release(gradient);
    trace_.release(weight);
  } else {
    trace_.release(gradient);
  }
  trace_.release(received);
  trace_.advance(std::exchange(lead_, Seconds{0}));
  if (--in_flight_ == 0) trace_.release(std::exchange(mask_, TraceTensor{}));
  for (const TraceTensor data : batch.data) trace_.release(data);
}

}  // namespace ebb
