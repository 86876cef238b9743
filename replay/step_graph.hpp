// StepGraph: the optimizer step of one rank as a CUDA graph, launched instead of op by op.
//
// Captured anew before every step, while the device is idle: Adam's constants change with the step and are in the
// kernels' arguments. The graph that runs is updated in place. Inside it ops order themselves by events of the capture;
// time stamps are event nodes. It starts behind everything that was enqueued on any stream, and all streams go on
// behind it.
#pragma once

#include <cstdint>
#include <vector>

#include "replay/cuda.hpp"
#include "replay/graph_stretch.hpp"
#include "replay/issue_plan.hpp"

namespace ebb::replay {

struct GraphExecTraits {
  static void destroy(void* exec);
};

class StepGraph {
 public:
  /// `streams`: all of a rank's, by StreamId; null handles are left out. They outlive it.
  StepGraph(const GraphStretch& stretch, const IssuePlan& issue, const std::vector<Stream>& streams,
            std::size_t compute);

  const GraphStretch& stretch() const { return stretch_; }

  /// Between them what is enqueued on the streams becomes the graph.
  void begin_capture();
  void end_capture();
  /// Event by which ops of the capture wait for `op` of the stretch.
  void* mark(std::uint32_t op) const { return marks_[op - stretch_.first].get(); }

  void launch();
  /// Recorded behind the launch.
  void* done() const { return done_.get(); }

 private:
  /// All other streams come behind compute, or compute behind them.
  void fork();
  void join();
  void* compute() const { return streams_[compute_].get(); }

  GraphStretch stretch_;
  const std::vector<Stream>& streams_;
  std::size_t compute_;
  std::vector<Event> marks_;
  std::vector<Event> joins_;  // by stream
  Event fork_;
  Event done_;
  Handle<GraphExecTraits> exec_;
};

/// Records an event's time, also while the stream is being captured.
void record_time(void* event, void* stream, bool capturing);

}  // namespace ebb::replay
