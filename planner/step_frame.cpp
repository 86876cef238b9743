#include "planner/step_frame.hpp"

#include "planner/life_parts.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/quantization.hpp"
#include "planner/weight_bytes.hpp"

namespace ebb {

namespace {

/// Part of `total` that falls on [begin, end) of `whole`; consecutive ranges add up to `total` exactly.
Ticks share(Ticks total, std::int64_t begin, std::int64_t end, std::int64_t whole) {
  const auto until = [&](std::int64_t x) {
    return std::llround(static_cast<double>(total.value) * static_cast<double>(x) / static_cast<double>(whole));
  };
  return {until(end) - until(begin)};
}

}  // namespace

FrameOptions standard_frame(const RankModel& rank) {
  return {.grad_copies = rank.footprint.step_temporaries,
          .copied = {0, rank.owned.value},
          .grad_size = grad_bytes_per_element(rank.job->precision)};
}

StepFrame::StepFrame(PlanBuilder& plan, const RankModel& rank, const FrameOptions& options)
    : plan_(plan),
      rank_(rank),
      options_(options),
      pieces_(overlap_pieces(*rank.job, *rank.stage)),
      groups_{sharding_group(*rank.job, false), sharding_group(*rank.job, true)} {
  const Parallel& parallel = rank.job->parallel;
  const bool sharded = groups_[0].members > 1 || groups_[1].members > 1;
  column_bytes_ = made_columns_bytes(*rank.job, *rank.stage);
  makes_columns_ = column_bytes_.value > 0;
  eager_columns_ = eager_columnwise(*rank.job);
  quantized_ = forward_quantize_bytes(*rank.job, *rank.stage) - column_bytes_;
  if (rank.job->compute.step_seconds) quantized_ = column_bytes_ = Bytes{0};
  // Without the distributed optimizer every rank needs all gradients and has all parameters.
  const bool distributed = rank.job->optimizer.distributed;
  gathers_ahead_ = sharded && distributed && parallel.overlap_param_gather;
  if (!distributed) reduction_ = Work::all_reduce;
  reduces_ahead_ = sharded && parallel.overlap_grad_reduce;
  for (const Term& term : rank.footprint.resident) {
    const BufferId buffer = plan_.buffer(term.name, Memory::device, term.bytes, true);
    plan_.role(buffer, term.role);
    if (term.role == Role::params) params_ = buffer;
    if (term.role == Role::columns) columns_ = buffer;
    if (term.name == "workspaces") workspaces_ = buffer;  // every rank has it (footprint.cpp)
  }
  // The copies of the step before, until gradients are zeroed.
  if (options_.grad_copies.value > 0) {
    grad_copies_ = plan_.buffer("fp32 gradients", Memory::device, options_.grad_copies, moments_exist(plan_.part()),
                                Phase::forward);
    plan_.state(grad_copies_, kGrads, options_.copied);
    plan_.role(grad_copies_, Role::grad_copies);
  }
  if (!is_training(plan_.part())) return;
  lazy_columns_ = rank.footprint.lazy_columns.value > 0;
  if (lazy_columns_) {
    columns_ = plan_.buffer("fp8 columns", Memory::device, rank.footprint.lazy_columns, false, Phase::step);
    plan_.role(columns_, Role::columns);
  }
  if (options_.levels != nullptr) {
    cuts_.emplace(plan_, *options_.levels, workspaces_);
  } else {
    activations_ = plan_.buffer("activations", Memory::device, rank.footprint.activations, false, Phase::backward);
    logits_ = plan_.buffer("logits", Memory::device, rank.footprint.logits, false, Phase::backward);
  }
  if (gathers_ahead_) gather(Phase::gather, pieces_.back(), {});
}

OpId StepFrame::collective(Phase phase, Work work, bool expert, Bytes bytes, std::uint8_t states, ElementRange range,
                           std::initializer_list<OpId> deps) {
  const Group& group = groups_[expert];
  if (group.members <= 1 || bytes.value == 0) return OpId::none();
  return plan_.add({.kind = OpKind::collective,
                    .phase = phase,
                    .work = work,
                    .states = states,
                    .expert = expert,
                    .stream = kComm,
                    .members = group.members,
                    .stride = group.stride,
                    .domains = group.domains,
                    .bytes = bytes,
                    .range = range},
                   deps);
}

OpId StepFrame::gather(Phase phase, const OverlapPiece& piece, std::initializer_list<OpId> deps) {
  for (const bool expert : {false, true}) {
    collective(phase, Work::all_gather, expert, piece.gather[expert], kParams, piece.range, deps);
  }
  return plan_.last_on(kComm);
}

OpId StepFrame::reduce(Phase phase, const OverlapPiece& piece, std::initializer_list<OpId> deps) {
  for (const bool expert : {false, true}) {
    collective(phase, reduction_, expert, piece.reduce[expert], kGrads, piece.range, deps);
  }
  return plan_.last_on(kComm);
}

OpId StepFrame::compute(Phase phase, ElementRange range, Ticks duration, std::initializer_list<OpId> deps) {
  const auto touched = static_cast<std::uint8_t>(phase == Phase::forward ? kParams : kParams | kGrads);
  const Op op{.kind = OpKind::compute,
              .phase = phase,
              .states = touched,
              .stream = kComputeStream,
              .buffer = activations_,
              .range = range,
              .duration = duration};
  return cuts_ ? cuts_->compute(op, deps) : plan_.add(op, deps);
}

void StepFrame::zero_grads() {
  const std::int64_t grad_size = size_of(rank_.job->precision.grads);
  plan_.add({.kind = OpKind::kernel,
             .phase = Phase::forward,
             .work = Work::zero_grads,
             .states = kGrads,
             .stream = kComputeStream,
             .calls = static_cast<std::uint32_t>(rank_.stage->buffers.size()),
             .bytes = bytes_of(rank_.stage->padded(), grad_size)});
  if (grad_copies_.valid() && moments_exist(plan_.part())) plan_.release(grad_copies_, Phase::forward);
}

void StepFrame::forward_backward(const TideHooks& hooks) {
  if (cuts_) cuts_->use(hooks);
  forward();
  backward();
}

/// The part of it that falls on `range`. Where the whole step's compute was measured, it is in there.
void StepFrame::quantize_weights(ElementRange range, OpId gathered) {
  const std::int64_t elements = pieces_.back().range.end;
  if (makes_columns_ && (!eager_columns_ || gathers_ahead_)) make_columns(Phase::forward, range, gathered);
  if (quantized_.value == 0) return;
  plan_.add({.kind = OpKind::kernel,
             .phase = Phase::forward,
             .work = Work::cast,
             .stream = kComputeStream,
             .bytes = {share({quantized_.value}, range.begin, range.end, elements).value}},
            {gathered});
}

void StepFrame::make_columns(Phase phase, ElementRange range, OpId gathered) {
  const std::int64_t elements = pieces_.back().range.end;
  plan_.add({.kind = OpKind::kernel,
             .phase = phase,
             .work = Work::make_columns,
             .states = kParams,
             .stream = kComputeStream,
             .buffer = columns_,
             .bytes = {share({column_bytes_.value}, range.begin, range.end, elements).value},
             .range = range},
            {gathered});
}

// The first micro-batch waits for the parameters piece by piece, first layers (the last piece) first.
void StepFrame::forward() {
  const Ticks total = to_ticks(rank_.compute.forward);
  const std::int64_t batches = rank_.job->micro_batches();
  if (lazy_columns_) plan_.allocate(columns_, Phase::forward);
  if (!cuts_) plan_.allocate(activations_, Phase::forward);
  if (!gathers_ahead_) {
    quantize_weights({0, pieces_.back().range.end}, OpId::none());
    compute(Phase::forward, {}, total, {});
    return;
  }
  const Ticks first = share(total, 0, 1, batches);
  const std::int64_t elements = pieces_.back().range.end;
  OpId gathered = plan_.last_on(kComm);
  for (std::size_t p = pieces_.size(); p-- > 0;) {
    const ElementRange range = pieces_[p].range;
    if (p + 1 < pieces_.size()) gathered = gather(Phase::forward, pieces_[p], {});
    quantize_weights(range, gathered);
    compute(Phase::forward, range, share(first, range.begin, range.end, elements), {gathered});
  }
  if (batches > 1) compute(Phase::forward, {}, total - first, {});
}

// Gradients of the last micro-batch leave piece by piece while backward goes on; the last piece waits for finalize.
void StepFrame::backward() {
  const Ticks total = to_ticks(rank_.compute.backward);
  const std::int64_t batches = rank_.job->micro_batches();
  if (!cuts_) plan_.allocate(logits_, Phase::backward);
  if (!reduces_ahead_) {
    compute(Phase::backward, {}, total, {});
  } else {
    const Ticks last = share(total, 0, 1, batches);
    const std::int64_t elements = pieces_.back().range.end;
    if (batches > 1) compute(Phase::backward, {}, total - last, {});
    for (std::size_t p = 0; p < pieces_.size(); ++p) {
      const ElementRange range = pieces_[p].range;
      const OpId done = compute(Phase::backward, range, share(last, range.begin, range.end, elements), {});
      if (p + 1 < pieces_.size()) reduce(Phase::backward, pieces_[p], {done});
    }
  }
  if (cuts_) return cuts_->finish();
  plan_.release(logits_, Phase::backward);
  plan_.release(activations_, Phase::backward);
}

OpId StepFrame::grads_kernel(Work work, Bytes bytes, BufferId buffer, std::initializer_list<OpId> deps) {
  return plan_.add({.kind = OpKind::kernel,
                    .phase = Phase::finalize,
                    .work = work,
                    .states = kGrads,
                    .stream = kComputeStream,
                    .buffer = buffer,
                    .bytes = bytes,
                    .range = {0, rank_.owned.value}},
                   deps);
}

void StepFrame::finalize(OpId prefetch, BufferId prefetched) {
  const Job& job = *rank_.job;
  reduce(Phase::finalize, pieces_.back(), {plan_.last_on(kComputeStream)});
  // Instances of the optimizer hold the same shard each: they add theirs up (the sum is over 1 / members of it).
  if (job.parallel.optimizer_instances > 1) {
    for (const bool expert : {false, true}) {
      Bytes total{0};
      for (const OverlapPiece& piece : pieces_) total += piece.reduce[expert];
      const Group group = instance_group(job, expert);
      if (total.value == 0) continue;
      plan_.add({.kind = OpKind::collective,
                 .phase = Phase::finalize,
                 .work = Work::all_reduce,
                 .states = kGrads,
                 .expert = expert,
                 .stream = kComm,
                 .members = group.members,
                 .stride = group.stride,
                 .domains = group.domains,
                 .bytes = {total.value / groups_[expert].members}},
                {plan_.last_on(kComputeStream)});
    }
  }
  const OpId reduced = plan_.last_on(kComm);
  if (grad_copies_.valid()) {
    plan_.allocate(grad_copies_, Phase::finalize);
    plan_.add({.kind = OpKind::kernel,
               .phase = Phase::finalize,
               .work = Work::cast,
               .states = kGrads,
               .stream = kComputeStream,
               .calls = static_cast<std::uint32_t>(rank_.shards.size()),
               .buffer = grad_copies_,
               .bytes = bytes_of(options_.copied.numel(), size_of(job.precision.grads) + 4),
               .range = options_.copied},
              {reduced});
  }
  const BufferId norm = plan_.buffer("gradient norm", Memory::device, {512}, false, Phase::finalize);
  plan_.role(norm, Role::norm);
  plan_.allocate(norm, Phase::finalize);
  OpId ready = grads_kernel(Work::grad_norm, bytes_of(rank_.owned, options_.grad_size), norm, {reduced});
  if (job.parallel.gpus > 1) {
    const Group everyone = strided_group(job.parallel.gpus, 1, job.cluster.interconnect.nvlink_domain);
    ready = plan_.add({.kind = OpKind::collective,
                       .phase = Phase::finalize,
                       .work = Work::all_reduce,
                       .stream = kComm,
                       .members = everyone.members,
                       .stride = everyone.stride,
                       .domains = everyone.domains,
                       .buffer = norm,
                       .bytes = {4}},
                      {ready});
  }
  ready = grads_kernel(Work::clip, bytes_of(rank_.owned, 2 * options_.grad_size), norm, {ready});
  plan_.add({.kind = OpKind::host_wait, .phase = Phase::finalize, .stream = kHost, .buffer = norm}, {ready});
  if (prefetch.valid() && !is_skip(plan_.part())) {
    plan_.add({.kind = OpKind::host_wait, .phase = Phase::finalize, .stream = kHost, .buffer = prefetched}, {prefetch});
  }
  plan_.release(norm, Phase::finalize);
  if (is_skip(plan_.part())) skip(prefetched);
}

/// The norm is not finite: what is in flight arrives, and then all is as before the step.
void StepFrame::skip(BufferId prefetched) {
  plan_.add({.kind = OpKind::host_wait, .phase = Phase::skip, .stream = kHost, .buffer = prefetched},
            {plan_.last_on(kH2d), plan_.last_on(kD2h), plan_.last_on(kComputeStream), plan_.last_on(kComm)});
  if (lazy_columns_) plan_.release(columns_, Phase::skip);
  if (grad_copies_.valid() && !moments_exist(plan_.part())) plan_.release(grad_copies_, Phase::skip);
}

void StepFrame::gather_all(Phase phase) {
  const OpId computed = plan_.last_on(kComputeStream);
  const OpId copied = plan_.last_on(kH2d);
  for (const OverlapPiece& piece : pieces_) gather(phase, piece, {computed, copied});
  if (makes_columns_ && eager_columns_) make_columns(phase, {0, pieces_.back().range.end}, plan_.last_on(kComm));
}

void StepFrame::close() {
  if (lazy_columns_) plan_.release(columns_, Phase::step);
  if (gathers_ahead_) return;
  // Without overlap each of the chained optimizers (dense, expert) gathers the buffers of both.
  const bool experts = rank_.stage->padded(true).value > 0;
  const OpId written = plan_.last_on(kComputeStream);
  for (int optimizer = 0; optimizer < (experts ? 2 : 1); ++optimizer) {
    for (const OverlapPiece& piece : pieces_) gather(Phase::gather, piece, {written});
  }
  if (makes_columns_ && eager_columns_)
    make_columns(Phase::gather, {0, pieces_.back().range.end}, plan_.last_on(kComm));
}

}  // namespace ebb
