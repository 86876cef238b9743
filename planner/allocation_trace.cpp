// The life of a rank: model, gradient buffers, optimizer, then steps.
#include "planner/allocation_trace.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/allocation_trace_stage.hpp"
#include "planner/allocation_trace_state.hpp"
#include "planner/lowerings.hpp"
#include "planner/trace_builder.hpp"
#include "planner/weight_bytes.hpp"

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
  std::size_t first_copied_;  // shards from here on have an fp32 copy of their gradients
  std::vector<TraceTensor> leftovers_;
};

RankTrace::RankTrace(TraceBuilder& trace, const RankModel& rank, const Candidate& candidate)
    : trace_(trace), rank_(rank), job_(*rank.job), stage_(trace, rank), state_(trace, rank, candidate) {
  const bool on_host = candidate.policy == Policy::cpu_adam;
  first_copied_ = on_host ? shards_on_host(rank, candidate.fraction) : 0;
  const bool copies = on_host ? job_.precision.grads != Dtype::fp32 : rank.footprint.step_temporaries.value > 0;
  if (!copies) first_copied_ = rank.shards.size();
  // Hidden states that the pipeline schedule's lists keep after a step: two and a half a virtual stage (footprint.cpp).
  const std::size_t virtual_stages = job_.parallel.pipeline > 1 ? job_.parallel.virtual_pipeline : 0;
  for (std::size_t i = 0; i < 3 * virtual_stages; ++i) leftovers_.push_back(trace.keep());
}

/// The model's own parameters go one by one as they move into the buffer. Source: Megatron-LM main d98e8a64dd,
/// core/distributed/param_and_grad_buffer.py.
void RankTrace::init() {
  const StageLayout& stage = *rank_.stage;
  const Precision& precision = job_.precision;
  std::vector<TraceTensor> own;
  for (const Parameter& parameter : stage.parameters)
    own.push_back(trace_.allocate(parameter.quantized ? weight_bytes(job_, parameter).row
                                                      : bytes_of(parameter.numel(), size_of(precision.params))));
  for (const BufferLayout& buffer : stage.buffers) {
    trace_.allocate(trace_.keep(), parameter_buffer_bytes(job_, buffer));
    trace_.allocate(trace_.keep(), bytes_of(buffer.numel, size_of(precision.grads)));
    for (const ParameterRange& range : buffer.ranges)
      trace_.release(std::exchange(own[range.parameter], TraceTensor{}));
  }
  for (const TraceTensor tensor : own) trace_.release(tensor);
  // What Transformer Engine keeps beside its workspaces.
  if (job_.compute.attention != Attention::local)
    for (int i = 0; i < 3; ++i) trace_.allocate(trace_.keep(), 512_KiB);
  state_.init();
  weight_copies();
}

/// Copies of linear weights in low precision, tensor by tensor. Column-wise ones that a step drops and makes again are
/// held throughout, as in the footprint.
void RankTrace::weight_copies() {
  const WeightCopies copies = ebb::weight_copies(job_, *rank_.stage);
  for (const std::vector<Bytes>* tensors : {&copies.always, &copies.columns})
    for (const Bytes tensor : *tensors) trace_.allocate(trace_.keep(), tensor);
}

/// Without Transformer Engine, gradients are clipped one shard at a time, through a copy.
void RankTrace::clip() {
  if (job_.compute.attention != Attention::local) return;
  for (const Shard& shard : rank_.shards) trace_.pass(bytes_of(shard.numel, 4));
}

void RankTrace::leftovers_go(std::size_t from) {
  for (std::size_t i = from; i < leftovers_.size(); ++i) trace_.release_kept(leftovers_[i]);
}

void RankTrace::step(bool first) {
  const Bytes hidden = hidden_state_bytes(job_);
  const std::size_t one_stage = std::min<std::size_t>(3, leftovers_.size());
  trace_.reset_clock();
  if (!first) leftovers_go(one_stage);
  state_.begin_step(first);
  stage_.run();
  state_.finalize(first);
  std::vector<TraceTensor> gradients;
  for (std::size_t i = first_copied_; i < rank_.shards.size(); ++i)
    gradients.push_back(trace_.allocate(bytes_of(rank_.shards[i].numel, 4)));
  clip();
  state_.step(first);
  for (const TraceTensor gradient : gradients) trace_.release(gradient);
  if (!first)
    for (std::size_t i = 0; i < one_stage; ++i) trace_.release_kept(leftovers_[i]);
  for (std::size_t i = 0; i < leftovers_.size(); ++i)
    trace_.allocate(leftovers_[i], i % 3 == 2 ? Bytes{hidden.value / 2} : hidden);
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
