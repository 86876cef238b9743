// The life of a rank: model, gradient buffers, optimizer, then steps.
#include "planner/allocation_trace.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/allocation_trace_stage.hpp"
#include "planner/allocation_trace_state.hpp"
#include "planner/lowerings.hpp"
#include "planner/trace_builder.hpp"
#include "planner/workspaces.hpp"

namespace ebb {

namespace {

class RankTrace {
 public:
  RankTrace(TraceBuilder& trace, const RankModel& rank, const Candidate& candidate);
  void init();
  void step(bool first);

 private:
  void weight_copies();
  void leftovers_go(std::size_t from);
  void clip();

  TraceBuilder& trace_;
  const RankModel& rank_;
  const Job& job_;
  StageTrace stage_;
  StateTrace state_;
  std::size_t first_copied_;            // shards from here on have an fp32 copy of their gradients
  std::vector<TraceTensor> leftovers_;  // by virtual stage: the last input, its gradient
  std::vector<TraceTensor> copies_;     // fp32 gradients
};

RankTrace::RankTrace(TraceBuilder& trace, const RankModel& rank, const Candidate& candidate)
    : trace_(trace), rank_(rank), job_(*rank.job), stage_(trace, rank), state_(trace, rank, candidate) {
  const bool on_host = candidate.policy == Policy::cpu_adam;
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
    const Bytes bytes = bytes_of(parameter.numel(), parameter.quantized ? 1 : size_of(precision.params));
    own.push_back(moves[i] ? trace_.allocate(bytes) : TraceTensor{});
    if (!moves[i]) trace_.allocate(trace_.keep(), bytes);
  }
  for (const BufferLayout& buffer : stage.buffers) {
    const std::int64_t size = buffer.quantized ? 1 : size_of(precision.params);
    const bool through_gradients = buffer.quantized && precision.fp8 == Fp8Recipe::mxfp8;
    trace_.term(MemoryTerm::parameters);
    if (!through_gradients && buffer.holds_parameters) trace_.allocate(trace_.keep(), bytes_of(buffer.numel, size));
    trace_.term(MemoryTerm::gradients);
    trace_.allocate(trace_.keep(), bytes_of(buffer.numel, size_of(precision.grads)));
    for (const ParameterRange& range : buffer.ranges)
      trace_.release(std::exchange(own[range.parameter], TraceTensor{}));
  }
  for (const TraceTensor tensor : own) trace_.release(tensor);
  state_.init();
  weight_copies();
}

/// FP8 copies of linear weights, one a parameter in proportion to its size.
void RankTrace::weight_copies() {
  Bytes left{0};
  for (const Term& term : rank_.footprint.resident)
    if (term.name == "fp8 weight copies") left += term.bytes;
  if (left.value == 0) return;
  trace_.term(MemoryTerm::weight_copies);
  std::vector<Numel> weights;
  Numel sum{0};
  for (const Parameter& parameter : rank_.stage->parameters) {
    if (parameter.columns == 0 || parameter.embedding_or_output) continue;
    weights.push_back(parameter.numel());
    sum += weights.back();
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double part =
        static_cast<double>(weights[i].value) / static_cast<double>(std::max<std::int64_t>(sum.value, 1));
    const Bytes bytes{std::llround(part * static_cast<double>(left.value))};
    trace_.allocate(trace_.keep(), std::min(bytes, left));
    left -= std::min(bytes, left);
    sum -= weights[i];
  }
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

void RankTrace::step(bool first) {
  const Bytes hidden = hidden_state_bytes(job_);
  const std::size_t one_stage = std::min<std::size_t>(kLeftByStage, leftovers_.size());
  trace_.reset_clock();
  if (!first) {
    leftovers_go(one_stage);
    for (const TraceTensor copy : copies_) trace_.release_kept(copy);  // zero_grad
  }
  trace_.term(MemoryTerm::workspaces);
  if (first)
    for (const Bytes size : gradient_placeholders(job_, *rank_.stage)) trace_.allocate(trace_.keep(), size);
  state_.begin_step(first);
  stage_.run();
  state_.finalize(first);
  trace_.term(MemoryTerm::gradient_copies);
  for (std::size_t i = 0; i < copies_.size(); ++i)
    trace_.allocate(copies_[i], bytes_of(rank_.shards[first_copied_ + i].numel, 4));
  clip();
  state_.step(first);
  if (!first)
    for (std::size_t i = 0; i < one_stage; ++i) trace_.release_kept(leftovers_[i]);
  trace_.term(MemoryTerm::hidden_states);
  for (const TraceTensor leftover : leftovers_) trace_.allocate(leftover, hidden);
}

}  // namespace

AllocationTrace allocation_trace(const RankModel& rank, const Candidate& candidate) {
  AllocationTrace trace;
  TraceBuilder builder;
  builder.start(trace.init);
  RankTrace life(builder, rank, candidate);
  life.init();
  builder.start(trace.first_step);
  life.step(true);
  builder.start(trace.later_step);
  life.step(false);
  trace.tensors = builder.tensors();
  return trace;
}

}  // namespace ebb
