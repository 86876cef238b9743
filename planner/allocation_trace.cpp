// The life of a rank: model, gradient buffers, optimizer, a checkpoint's load, then steps and saves.
#include "planner/allocation_trace.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/allocation_trace_stage.hpp"
#include "planner/allocation_trace_state.hpp"
#include "planner/fp8_load.hpp"
#include "planner/lowerings.hpp"
#include "planner/trace_builder.hpp"
#include "planner/weight_bytes.hpp"

namespace ebb {

namespace {

enum class StepKind : std::uint8_t { first, steady, skipped };

class RankTrace {
 public:
  RankTrace(TraceBuilder& trace, const RankModel& rank, const Candidate& candidate);
  void init();
  void load(Start start);
  void step(StepKind kind);
  void save();

 private:
  void weight_copies();
  void columns_come();
  void columns_go();
  void leftovers_go(std::size_t from);
  void clip();

  TraceBuilder& trace_;
  const RankModel& rank_;
  const Job& job_;
  StageTrace stage_;
  StateTrace state_;
  LoadTargets load_targets_ = LoadTargets::on_device;
  std::size_t first_copied_;            // shards from here on have an fp32 copy of their gradients
  std::vector<TraceTensor> leftovers_;  // by virtual stage: the last input, its gradient
  std::vector<TraceTensor> copies_;     // fp32 gradients
  std::vector<TraceTensor> columns_;    // column-wise copies of FP8 weights ...
  std::vector<Bytes> column_bytes_;
  bool has_columns_ = false;  // ... which are there
};

RankTrace::RankTrace(TraceBuilder& trace, const RankModel& rank, const Candidate& candidate)
    : trace_(trace), rank_(rank), job_(*rank.job), stage_(trace, rank), state_(trace, rank, candidate) {
  const bool on_host = candidate.policy == Policy::cpu_adam;
  load_targets_ = load_targets_of(candidate.policy);
  first_copied_ = on_host ? shards_on_host(rank, candidate.fraction) : 0;
  const bool copies = on_host ? job_.precision.grads != Dtype::fp32 : rank.footprint.step_temporaries.value > 0;
  if (!copies) first_copied_ = rank.shards.size();
  for (std::int64_t i = 0; i < kLeftByStage * stages_with_input(*rank.stage); ++i) leftovers_.push_back(trace.keep());
  for (std::size_t i = first_copied_; i < rank.shards.size(); ++i) copies_.push_back(trace.keep());
}

/// The model's own parameters go one by one as they move into the buffer, where buffers hold parameters. Source:
/// Megatron-LM main d98e8a64dd, core/distributed/param_and_grad_buffer.py.
void RankTrace::init() {
  const StageLayout& stage = *rank_.stage;
  const Precision& precision = job_.precision;
  std::vector<bool> moves(stage.parameters.size(), false);
  for (const BufferLayout& buffer : stage.buffers)
    for (const ParameterRange& range : buffer.ranges) moves[range.parameter] = buffer.holds_parameters;
  std::vector<TraceTensor> own;
  trace_.term(MemoryTerm::parameters);
  for (std::size_t i = 0; i < stage.parameters.size(); ++i) {
    const Parameter& parameter = stage.parameters[i];
    const Bytes bytes = parameter.quantized ? weight_bytes(job_, parameter).row
                                            : bytes_of(parameter.numel(), size_of(precision.params));
    own.push_back(moves[i] ? trace_.allocate(bytes) : TraceTensor{});
    if (!moves[i]) trace_.allocate(trace_.keep(), bytes);
  }
  for (const BufferLayout& buffer : stage.buffers) {
    trace_.term(MemoryTerm::parameters);
    if (buffer.holds_parameters) trace_.allocate(trace_.keep(), parameter_buffer_bytes(job_, buffer));
    trace_.term(MemoryTerm::gradients);
    trace_.allocate(trace_.keep(), bytes_of(buffer.numel, size_of(precision.grads)));
    for (const ParameterRange& range : buffer.ranges)
      trace_.release(std::exchange(own[range.parameter], TraceTensor{}));
  }
  for (const TraceTensor tensor : own) trace_.release(tensor);
  state_.init();
  weight_copies();
}

/// Copies of linear weights in low precision, tensor by tensor.
void RankTrace::weight_copies() {
  trace_.term(MemoryTerm::weight_copies);
  WeightCopies copies = ebb::weight_copies(job_, *rank_.stage);
  for (const Bytes tensor : copies.always) trace_.allocate(trace_.keep(), tensor);
  column_bytes_ = std::move(copies.columns);
  for (std::size_t i = 0; i < column_bytes_.size(); ++i) columns_.push_back(trace_.keep());
  if (eager_columnwise(job_)) columns_come();
}

void RankTrace::columns_come() {
  if (std::exchange(has_columns_, true)) return;
  trace_.term(MemoryTerm::weight_copies);
  for (std::size_t i = 0; i < columns_.size(); ++i) trace_.allocate(columns_[i], column_bytes_[i]);
}

/// Quantisation drops them; the next forward makes them again, layer by layer.
void RankTrace::columns_go() {
  if (eager_columnwise(job_) || !std::exchange(has_columns_, false)) return;
  for (const TraceTensor column : columns_) trace_.release_kept(column);
}

/// Without Transformer Engine, gradients are clipped one shard at a time, through a copy.
void RankTrace::clip() {
  if (job_.compute.attention != Attention::local) return;
  trace_.term(MemoryTerm::optimizer_scratch);
  for (const Shard& shard : rank_.shards) trace_.pass(bytes_of(shard.numel, 4));
}

void RankTrace::leftovers_go(std::size_t from) {
  for (std::size_t i = from; i < leftovers_.size(); ++i) trace_.release_kept(leftovers_[i]);
}

/// Parameters are read into the buffer; FP8 weights through a bf16 tensor each, all of them at a time, unless a policy
/// with state on the host has them there as well. Source: Megatron-LM core/dist_checkpointing (FP8 tensors of the
/// dictionary to load into are replaced by bf16 ones), pull request 6544 (_should_load_fp8_skeleton_on_cpu).
void RankTrace::load(Start start) {
  if (start == Start::fresh) return;
  std::vector<TraceTensor> targets;
  trace_.term(MemoryTerm::checkpoint);
  for (const Parameter& parameter : rank_.stage->parameters) {
    if (!parameter.quantized) continue;
    const TraceTensor target = trace_.allocate(bytes_of(parameter.numel(), size_of(job_.precision.params)));
    if (load_targets_ == LoadTargets::on_device)
      targets.push_back(target);
    else
      trace_.release(target);  // came over and is quantised
  }
  state_.load(start);
  for (const TraceTensor target : targets) trace_.release(target);
}

void RankTrace::save() { state_.save(); }

void RankTrace::step(StepKind kind) {
  const bool first = kind == StepKind::first;
  const bool without_moments = !state_.has_moments();
  const Bytes hidden = hidden_state_bytes(job_);
  const std::size_t one_stage = std::min<std::size_t>(kLeftByStage, leftovers_.size());
  trace_.reset_clock();
  trace_.mark(Phase::forward);
  if (!first) {
    leftovers_go(one_stage);
    for (const TraceTensor copy : copies_) trace_.release_kept(copy);  // zero_grad
  }
  state_.begin_step(without_moments);
  columns_come();
  trace_.term(MemoryTerm::remainder);
  if (first) trace_.allocate(trace_.keep(), job_.measured.resident_remainder);
  const TraceTensor more = trace_.allocate(job_.measured.peak_remainder);
  trace_.term(MemoryTerm::other);
  stage_.run();
  trace_.release(more);
  trace_.mark(Phase::finalize);
  state_.finalize(without_moments);
  trace_.term(MemoryTerm::gradient_copies);
  for (std::size_t i = 0; i < copies_.size(); ++i)
    trace_.allocate(copies_[i], bytes_of(rank_.shards[first_copied_ + i].numel, 4));
  if (kind == StepKind::skipped) {
    state_.skip();
  } else {
    clip();
    trace_.mark(Phase::step);
    state_.step(without_moments);
    columns_go();
  }
  // Parameters are gathered in place, here or before the next forward.
  if (kind != StepKind::skipped) trace_.mark(Phase::gather);
  if (!first)
    for (std::size_t i = 0; i < one_stage; ++i) trace_.release_kept(leftovers_[i]);
  trace_.term(MemoryTerm::hidden_states);
  for (const TraceTensor leftover : leftovers_) trace_.allocate(leftover, hidden);
}

/// Writes the parts one after the other, into the memory of those that were there before.
class Parts {
 public:
  Parts(const RankModel& rank, const Candidate& candidate, bool marked, AllocationTrace& trace)
      : trace_(trace), builder_(marked), life_(builder_, rank, candidate) {}

  template <class Write>
  void add(Phase phase, const Write& write) {
    // Its address stays while it is written: the list grows between parts only.
    if (count_ == trace_.parts.size()) trace_.parts.emplace_back();
    TracePart& part = trace_.parts[count_++];
    part.phase = phase;
    part.events.clear();
    part.marks.clear();
    part.clock.clear();
    if (phase == Phase::step || phase == Phase::skip) part.events.reserve(longest_ + longest_ / 8);
    builder_.start(part);
    write(life_);
    longest_ = std::max(longest_, part.events.size());
  }
  void end() {
    trace_.parts.resize(count_);
    trace_.tensors = builder_.tensors();
  }

 private:
  AllocationTrace& trace_;
  TraceBuilder builder_;
  RankTrace life_;
  std::size_t count_ = 0;
  std::size_t longest_ = 0;  // events of a part: steps are much alike
};

}  // namespace

AllocationTrace allocation_trace(const RankModel& rank, const Candidate& candidate, const TraceOptions& options) {
  AllocationTrace trace;
  allocation_trace_into(rank, candidate, options, trace);
  return trace;
}

void allocation_trace_into(const RankModel& rank, const Candidate& candidate, const TraceOptions& options,
                           AllocationTrace& trace) {
  const Start start = options.start.value_or(rank.job->checkpoint.start);
  Parts parts(rank, candidate, options.whole_life, trace);
  const auto step = [](RankTrace& life) { life.step(StepKind::steady); };
  parts.add(Phase::init, [](RankTrace& life) { life.init(); });
  if (start != Start::fresh) parts.add(Phase::load, [&](RankTrace& life) { life.load(start); });
  parts.add(Phase::first_step, [](RankTrace& life) { life.step(StepKind::first); });
  parts.add(Phase::step, step);
  if (options.whole_life) {
    parts.add(Phase::skip, [](RankTrace& life) { life.step(StepKind::skipped); });
    parts.add(Phase::step, step);
  }
  if (options.whole_life || save_allocates(*rank.job, candidate)) {
    parts.add(Phase::save, [](RankTrace& life) { life.save(); });
    parts.add(Phase::step, step);
  }
  parts.end();
}

}  // namespace ebb
