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

/// Micro-batches that are in one virtual stage after another before the next stage's turn.
std::int64_t micro_batch_group(const Job& job) {
  return job.parallel.micro_batch_group > 0 ? job.parallel.micro_batch_group : job.parallel.pipeline;
}

/// Micro-batches that a step of the trace has: enough to fill the pipeline, and some more. Those in between repeat.
std::int64_t traced_micro_batches(const Job& job) {
  const std::int64_t stages = job.parallel.pipeline;
  const std::int64_t enough = job.parallel.virtual_pipeline > 1 ? 2 * micro_batch_group(job) + stages : stages + 2;
  return std::clamp<std::int64_t>(job.micro_batches(), 1, enough);
}

/// Forwards before the first backward. Source: schedules.py, get_pp_rank_microbatches.
std::int64_t warm_up(const Job& job, std::int64_t rank, std::int64_t visits) {
  const std::int64_t stages = job.parallel.pipeline;
  const std::int64_t virtual_stages = job.parallel.virtual_pipeline;
  const std::int64_t ahead =
      virtual_stages == 1 ? stages - rank - 1 : 2 * (stages - rank - 1) + (virtual_stages - 1) * micro_batch_group(job);
  return std::min(ahead, visits);
}

/// Virtual stages in the order in which forward visits them. Source: schedules.py, get_schedule_table.
std::vector<std::size_t> visits_of(const Job& job, std::int64_t micro_batches) {
  const std::int64_t group = job.parallel.virtual_pipeline > 1 ? micro_batch_group(job) : 1;
  std::vector<std::size_t> visits;
  for (std::int64_t done = 0; done < micro_batches; done += group)
    for (std::int64_t stage = 0; stage < job.parallel.virtual_pipeline; ++stage)
      visits.insert(visits.end(), std::min(group, micro_batches - done), static_cast<std::size_t>(stage));
  return visits;
}

}  // namespace

StageTrace::StageTrace(TraceBuilder& trace, const Job& job, const StageLayout& layout, const ComputeTime& compute)
    : trace_(trace), job_(job), pipeline_rank_(layout.pipeline_rank), dense_(layer_tape(job_, false)) {
  if (job_.model.moe) moe_ = layer_tape(job_, true);
  whole_ = Bytes{element() * rank_tokens(job_) * job_.model.hidden};
  logits_ = Bytes{element() * rank_tokens(job_) * (padded_vocabulary(job_) / job_.parallel.tensor)};
  const Recompute& recompute = job_.recompute;
  std::size_t layers = 0;
  for (const ModelChunk& chunk : layout.chunks) {
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
  layer_forward_ = Seconds{compute.forward.value / visits};
  layer_backward_ = Seconds{compute.backward.value / visits};
}

void StageTrace::begin_warm() {
  in_use_.fill(true);
  has_angles_ = true;
  is_warm_ = true;
}

void StageTrace::set_layer_times(Seconds forward, Seconds backward) {
  layer_forward_ = forward;
  layer_backward_ = backward;
}

void StageTrace::run() {
  const std::vector<std::size_t> visits = visits_of(job_, traced_micro_batches(job_));
  const auto ahead = static_cast<std::size_t>(warm_up(job_, pipeline_rank_, static_cast<std::int64_t>(visits.size())));
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
        if (static_cast<FirstUse>(op.slot) == FirstUse::gradient_stand_in)
          gradient_stand_in(op.rows, op.bytes);
        else
          first_use(static_cast<FirstUse>(op.slot), op.bytes);
        break;
    }
  }
}

void StageTrace::first_use(FirstUse what, Bytes bytes) {
  if (what == FirstUse::shared_buffer) return grow_shared_buffer(bytes);
  if (std::exchange(in_use_[static_cast<std::size_t>(what)], true)) return;
  trace_.term(MemoryTerm::workspaces);
  for (const Bytes workspace : workspaces_of(job_, what)) trace_.allocate(trace_.keep(), workspace);
}

void StageTrace::gradient_stand_in(std::uint32_t rows, Bytes bytes) {
  const std::pair<std::uint32_t, Bytes> shape{rows, bytes};
  if (std::find(stand_ins_.begin(), stand_ins_.end(), shape) != stand_ins_.end()) return;
  stand_ins_.push_back(shape);
  if (is_warm_) return;
  trace_.term(MemoryTerm::workspaces);
  trace_.allocate(trace_.keep(), bytes);
}

Bytes StageTrace::gradient_stand_ins() const {
  Bytes sum{0};
  for (const auto& [rows, bytes] : stand_ins_) sum += bytes;
  return sum;
}

/// Megatron-LM's GlobalMemoryBuffer: one tensor for all, replaced by a larger one where it does not suffice.
void StageTrace::grow_shared_buffer(Bytes bytes) {
  if (bytes <= shared_bytes_) return;
  shared_bytes_ = bytes;
  if (is_warm_) return;
  trace_.term(MemoryTerm::workspaces);
  if (shared_buffer_.valid()) trace_.release_kept(shared_buffer_);
  shared_buffer_ = trace_.keep();
  trace_.allocate(shared_buffer_, bytes);
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

void StageTrace::load_data(const VirtualStage& stage, MicroBatch& batch) {
  trace_.term(MemoryTerm::data);
  const std::int64_t s = job_.batch.sequence;
  const bool loads = stage.chunk->embedding || stage.chunk->output;
  if (loads)
    for (TraceTensor& data : batch.data) data = trace_.allocate(Bytes{8 * rank_tokens(job_)});
  const bool local = job_.compute.attention == Attention::local;
  if (local || (loads && job_.activations.loader_mask)) batch.mask = trace_.allocate(Bytes{rank_tokens(job_) * s});
  if (!std::exchange(has_angles_, true) && job_.model.positions == Positions::rope)
    trace_.allocate(trace_.keep(), Bytes{4 * s * job_.model.head_dim});
}

/// Embedding, or hidden states from the stage before.
TraceTensor StageTrace::first_input(const VirtualStage& stage, MicroBatch& batch) {
  load_data(stage, batch);
  trace_.term(MemoryTerm::hidden_states);
  if (!stage.chunk->embedding) return trace_.allocate(hidden());
  TraceTensor embedded = trace_.allocate(whole_);
  if (job_.parallel.sequence) {
    const TraceTensor split = trace_.allocate(hidden());
    trace_.release(std::exchange(embedded, split));
  }
  if (job_.activations.hidden_dropout == 0) return embedded;
  const TraceTensor kept = trace_.allocate(hidden());
  batch.dropped = trace_.allocate(Bytes{hidden().value / element()});
  trace_.release(embedded);
  return kept;
}

void StageTrace::forward(VirtualStage& stage) {
  trace_.mark(Phase::forward);
  visits_.push_back({Phase::forward, stage.chunk, trace_.position()});
  MicroBatch& batch = stage.alive.emplace_back();
  TraceTensor hidden = first_input(stage, batch);
  for (std::size_t i = 0; i < stage.whole_from; i += stage.recomputed_by)
    hidden = block_forward(stage, i, batch, hidden);
  batch.layers.resize(stage.layers.size() - stage.whole_from);
  for (std::size_t i = stage.whole_from; i < stage.layers.size(); ++i)
    hidden = layer_forward(*stage.layers[i], hidden, batch.layers[i - stage.whole_from]);
  if (stage.chunk->output) forward_ends_.push_back(trace_.position());
  if (stage.chunk->mtp_layers > 0) predict(stage, batch);
  batch.last = hidden;
  trace_.advance(std::exchange(lead_, Seconds{0}));
  if (stage.chunk->output)
    loss_forward(batch);
  else
    trace_.release(std::exchange(batch.last, TraceTensor{}));  // sent on
  // Local attention masks its scores by it, and so does their gradient.
  if (job_.compute.attention != Attention::local) trace_.release(std::exchange(batch.mask, TraceTensor{}));
  if (!stage.chunk->output) forward_ends_.push_back(trace_.position());
}

void StageTrace::backward(VirtualStage& stage) {
  EBB_ASSERT(!stage.alive.empty());
  trace_.mark(Phase::backward);
  visits_.push_back({Phase::backward, stage.chunk, trace_.position()});
  MicroBatch batch = std::move(stage.alive.front());
  stage.alive.pop_front();
  trace_.term(MemoryTerm::backward);
  // What the next stage sends stays until backward has ended.
  const TraceTensor received = stage.chunk->output ? TraceTensor{} : trace_.allocate(hidden());
  const TraceTensor gradient = stage.chunk->output ? loss_backward(batch) : trace_.allocate(hidden());
  for (auto prediction = batch.predictions.rbegin(); prediction != batch.predictions.rend(); ++prediction)
    predict_backward(*prediction);
  for (auto layer = batch.layers.rbegin(); layer != batch.layers.rend(); ++layer) layer_backward(*layer);
  for (std::size_t block = batch.inputs.size(); block-- > 0;)
    block_backward(stage, block * stage.recomputed_by, batch.inputs[block]);
  trace_.term(MemoryTerm::backward);
  trace_.release(batch.dropped);
  if (stage.chunk->embedding) {
    const TraceTensor weight = trace_.allocate(weight_bytes());
    trace_.release(gradient);
    trace_.release(weight);
  } else {
    trace_.release(gradient);
  }
  trace_.release(received);
  trace_.advance(std::exchange(lead_, Seconds{0}));
  trace_.release(batch.mask);
  for (const TraceTensor data : batch.data) trace_.release(data);
}

}  // namespace ebb
