#include "replay/step_walk.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>

#include "kernels/elementwise.hpp"
#include "kernels/gate.hpp"
#include "models/errors.hpp"
#include "replay/cuda.hpp"

namespace ebb::replay {

namespace {

constexpr std::size_t kStreamKinds = 5;          // models/plan.hpp
constexpr std::uint32_t kMostAhead = 256;        // commands; a queue holds about a thousand
constexpr std::chrono::microseconds kSlow{200};  // longer than what a missing dependency could hide behind

cudaStream_t cuda(void* stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t event(void* of) { return static_cast<cudaEvent_t>(of); }

void record(void* of, void* stream) { record_time(of, stream, false); }

}  // namespace

StepWalk::StepWalk(const Program& program, const ExecuteOptions& options, const IssuePlan& issue, DeviceMemory& memory)
    : program_(&program),
      options_(options),
      issue_(&issue),
      memory_(memory),
      streams_(kStreamKinds),
      clock_(*program.plan, issue),
      ended_([this](OpId op) { return has_ended(op); }) {
  make_streams();
  look_up_addresses();
}

/// A plan has one stream of a kind at most.
void StepWalk::make_streams() {
  stream_of_.clear();
  for (const ebb::Stream& stream : plan().streams) {
    Stream& made = streams_[static_cast<std::size_t>(stream.kind)];
    if (stream.kind != StreamKind::host && made.get() == nullptr) made = make_stream();
    stream_of_.push_back(made.get());
  }
  if (streams_[compute_].get() == nullptr) throw InputError({}, "the plan has no compute stream");
}

void StepWalk::look_up_addresses() {
  addresses_.assign(plan().buffers.size(), nullptr);
  for (std::uint32_t b = 0; b < addresses_.size(); ++b) addresses_[b] = memory_.at({b});
}

void StepWalk::take_up(const Program& program, const IssuePlan& issue) {
  EBB_ASSERT(!graph_);
  program_ = &program;
  issue_ = &issue;
  make_streams();
  look_up_addresses();
  clock_.cover(plan().ops.size());
}

std::uint32_t StepWalk::ahead(const std::vector<Ready>& actions, const StandIns& stand_ins) const {
  std::vector<std::uint32_t> commands(actions.size());
  for (std::uint32_t op = 0; op < commands.size(); ++op) {
    commands[op] = commands_of(actions[op]) + static_cast<std::uint32_t>(stand_ins.launches(op)) + 2;
  }
  const std::uint32_t ops = ops_ahead(*issue_, commands, kMostAhead);
  return graph_ ? std::min(ops, graph_->stretch().first) : ops;
}

void StepWalk::begin_step(bool timed) {
  timed_ = timed;
  issued_ = 0;
  graph_ready_ = graph_launched_ = false;
  live_ = LiveMeter(memory_.live());
}

void StepWalk::use_graph(const GraphStretch& stretch) { graph_.emplace(stretch, *issue_, streams_, compute_); }

void StepWalk::prepare_graph(Issuer& issuer) {
  if (!graph_) return;
  capturing_ = true;
  issuer.lay_at(&addresses_);
  graph_->begin_capture();
  for (std::uint32_t op = graph_->stretch().first; op < graph_->stretch().last; ++op) device_op(issuer, op);
  graph_->end_capture();
  issuer.lay_at(nullptr);
  capturing_ = false;
  graph_ready_ = true;
}

bool StepWalk::graph_runs(std::uint32_t first, std::uint32_t last) const {
  return graph_ready_ && first == graph_->stretch().first && last >= graph_->stretch().last;
}

void StepWalk::start(const StartGate* gate, int step) {
  if (gate != nullptr) {
    for (const Stream& stream : streams_) {
      if (stream.get() != nullptr) gate->hold(step, stream.get());
    }
  }
  record(clock_.base(), compute());
}

void StepWalk::enqueue(Issuer& issuer, std::uint32_t first, std::uint32_t last) {
  for (std::uint32_t op = first; op < last; ++op) {
    issued_ = op;
    live_.enter(plan().ops[op].phase);
    if (graph_runs(op, last)) {
      graph_->launch();
      graph_launched_ = true;
      op = graph_->stretch().last - 1;
    } else if (issue_->steps[op].on_host) {
      host_op(issuer, op);
    } else {
      device_op(issuer, op);
    }
  }
}

/// A graph starts behind all that was enqueued before it, and everything later is behind the graph.
void StepWalk::wait_for(std::uint32_t dep, void* stream) {
  if (capturing_ && dep < graph_->stretch().first) return;
  if (graph_launched_ && graph_->stretch().holds(dep)) return;
  void* const end = capturing_ ? graph_->mark(dep) : clock_.end(dep);
  check(cudaStreamWaitEvent(cuda(stream), event(end), 0), "cudaStreamWaitEvent");
}

void StepWalk::device_op(Issuer& issuer, std::uint32_t id) {
  const Op& op = plan().ops[id];
  void* const stream = stream_of(op.stream);
  for (const std::uint32_t dep : issue_->waits_of(id)) wait_for(dep, stream);
  if (options_.slow == plan().streams[op.stream.index].kind) {
    check(kernels::launch_delay(static_cast<std::uint64_t>(std::chrono::nanoseconds(kSlow).count()), stream),
          "launch_delay");
  }
  if (timed_) record_time(clock_.start(id), stream, capturing_);
  if (op.kind == OpKind::allocate) {
    allocate(id, stream);
  } else if (op.kind == OpKind::release) {
    release(op, stream);
  } else {
    issuer.issue(id, stream);
  }
  const bool used = issue_->steps[id].event_used;
  if (timed_ || (used && !capturing_)) record_time(clock_.end(id), stream, capturing_);
  if (used && capturing_) check(cudaEventRecord(event(graph_->mark(id)), cuda(stream)), "cudaEventRecord");
}

void StepWalk::poison(void* at, Bytes bytes, void* stream) const {
  if (!options_.poison || bytes.value == 0) return;
  check(cudaMemsetAsync(at, kernels::kPoison, static_cast<std::size_t>(bytes.value), cuda(stream)), "cudaMemsetAsync");
}

// The op behind which storage comes back may still read it.
void StepWalk::release(const Op& op, void* stream) {
  const Buffer& what = plan().buffers[op.buffer.index];
  if (what.memory != Memory::device) return;
  if (poison_releases_ && !op.after.valid()) poison(memory_.at(op.buffer), what.bytes, stream);
  const Bytes before = memory_.live();
  memory_.release(op.buffer, op.after);
  live_.change(memory_.live() - before);
}

void StepWalk::allocate(std::uint32_t id, void* stream) {
  const BufferId buffer = plan().ops[id].buffer;
  const Buffer& what = plan().buffers[buffer.index];
  if (what.memory != Memory::device) return;  // the host store has room for all of it
  memory_.poll(ended_);
  const Bytes before = memory_.live();
  void* const at = memory_.allocate(buffer);
  live_.change(memory_.live() - before);
  if (addresses_[buffer.index] != at) graph_ready_ = false;
  addresses_[buffer.index] = at;
  poison(at, what.bytes, stream);
}

/// An event that was not recorded in this step yet still says what was in the step before.
bool StepWalk::has_ended(OpId op) const {
  if (op.index >= issued_) return false;
  if (issue_->steps[op.index].on_host) return true;
  const bool in_graph = graph_launched_ && graph_->stretch().holds(op.index);
  const cudaError_t state = cudaEventQuery(event(in_graph ? graph_->done() : clock_.end(op.index)));
  if (state == cudaErrorNotReady) {
    (void)cudaGetLastError();
    return false;
  }
  check(state, "cudaEventQuery");
  return true;
}

void StepWalk::host_op(Issuer& issuer, std::uint32_t id) {
  HostSpan& span = clock_.host(id);
  span.arrived = StartGate::Clock::now();
  for (const std::uint32_t dep : issue_->waits_of(id)) {
    const bool in_graph = graph_launched_ && graph_->stretch().holds(dep);
    check(cudaEventSynchronize(event(in_graph ? graph_->done() : clock_.end(dep))), "cudaEventSynchronize");
  }
  if (options_.slow == StreamKind::host) {
    const auto until = StartGate::Clock::now() + kSlow;
    while (StartGate::Clock::now() < until) {
    }
  }
  span.waited = StartGate::Clock::now();
  issuer.issue(id, nullptr);
  span.ended = StartGate::Clock::now();
}

void StepWalk::finish() {
  for (const Stream& stream : streams_) {
    if (stream.get() != nullptr) check(cudaStreamSynchronize(cuda(stream.get())), "cudaStreamSynchronize");
  }
  check(cudaGetLastError(), "the step's kernels");
}

}  // namespace ebb::replay
