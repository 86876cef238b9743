#include "replay/step_graph.hpp"

#include <cuda_runtime_api.h>

namespace ebb::replay {

namespace {

cudaStream_t cuda(void* stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t event(void* of) { return static_cast<cudaEvent_t>(of); }

struct GraphTraits {
  static void destroy(void* graph) { (void)cudaGraphDestroy(static_cast<cudaGraph_t>(graph)); }
};

}  // namespace

void GraphExecTraits::destroy(void* exec) { (void)cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(exec)); }

StepGraph::StepGraph(const GraphStretch& stretch, const IssuePlan& issue, const std::vector<Stream>& streams,
                     std::size_t compute)
    : stretch_(stretch),
      streams_(streams),
      compute_(compute),
      marks_(stretch.last - stretch.first),
      joins_(streams.size()),
      fork_(make_event(false)),
      done_(make_event(false)) {
  for (std::uint32_t op = stretch.first; op < stretch.last; ++op) {
    if (issue.steps[op].event_used) marks_[op - stretch.first] = make_event(false);
  }
  for (std::size_t s = 0; s < streams.size(); ++s) {
    if (streams[s].get() != nullptr && s != compute) joins_[s] = make_event(false);
  }
}

void StepGraph::fork() {
  check(cudaEventRecord(event(fork_.get()), cuda(compute())), "cudaEventRecord");
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    if (joins_[s].get() == nullptr) continue;
    check(cudaStreamWaitEvent(cuda(streams_[s].get()), event(fork_.get()), 0), "cudaStreamWaitEvent");
  }
}

void StepGraph::join() {
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    if (joins_[s].get() == nullptr) continue;
    check(cudaEventRecord(event(joins_[s].get()), cuda(streams_[s].get())), "cudaEventRecord");
    check(cudaStreamWaitEvent(cuda(compute()), event(joins_[s].get()), 0), "cudaStreamWaitEvent");
  }
}

void StepGraph::begin_capture() {
  check(cudaStreamBeginCapture(cuda(compute()), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  fork();
}

void StepGraph::end_capture() {
  join();
  cudaGraph_t captured = nullptr;
  check(cudaStreamEndCapture(cuda(compute()), &captured), "cudaStreamEndCapture");
  const Handle<GraphTraits> graph(captured);
  if (exec_.get() != nullptr) {
    cudaGraphExecUpdateResultInfo info{};
    if (cudaGraphExecUpdate(static_cast<cudaGraphExec_t>(exec_.get()), captured, &info) == cudaSuccess) return;
    (void)cudaGetLastError();  // what cannot be updated is made anew
  }
  cudaGraphExec_t exec = nullptr;
  check(cudaGraphInstantiate(&exec, captured, 0), "cudaGraphInstantiate");
  exec_ = Handle<GraphExecTraits>(exec);
  check(cudaGraphUpload(exec, cuda(compute())), "cudaGraphUpload");
}

void StepGraph::launch() {
  join();
  check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(exec_.get()), cuda(compute())), "cudaGraphLaunch");
  check(cudaEventRecord(event(done_.get()), cuda(compute())), "cudaEventRecord");
  fork();
}

void record_time(void* of, void* stream, bool capturing) {
  check(cudaEventRecordWithFlags(event(of), cuda(stream), capturing ? cudaEventRecordExternal : cudaEventRecordDefault),
        "cudaEventRecordWithFlags");
}

}  // namespace ebb::replay
