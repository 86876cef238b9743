// StepWalk: one rank's host thread walks over a plan's ops: waits, acts, records. This loop is what must keep the
// device's queues full, so it looks nothing up and allocates nothing. Of a life it walks one plan after another, on the
// same streams and events.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "models/live_meter.hpp"
#include "replay/issue_plan.hpp"
#include "replay/issuer.hpp"
#include "replay/step_graph.hpp"
#include "replay/timing.hpp"

namespace ebb::replay {

class StepWalk {
 public:
  /// Streams and events of `program`'s plan on the current device. All arguments outlive it.
  StepWalk(const Program& program, const ExecuteOptions& options, const IssuePlan& issue, DeviceMemory& memory);

  void* compute() const { return streams_[compute_].get(); }
  const StepClock& clock() const { return clock_; }
  /// Live bytes of the present or last step, as allocated and released.
  const LiveMeter& live() const { return live_; }

  /// Goes on with another plan of the rank, in which DeviceMemory is already: between parts, or behind an op of the
  /// present step up to which both plans are the same (share_prefix()); then events and live bytes go on. No graphs.
  void take_up(const Program& program, const IssuePlan& issue);
  /// Also fills device memory with poison where its life ends and nothing may still read it (ExecuteOptions::poison).
  void poison_releases() { poison_releases_ = true; }

  /// Ops that can be enqueued behind a closed gate.
  std::uint32_t ahead(const std::vector<Ready>& actions, const StandIns& stand_ins) const;

  /// Before each step. Untimed steps record only the events that others wait for.
  void begin_step(bool timed);
  /// From now on the optimizer step is a graph.
  void use_graph(const GraphStretch& stretch);
  /// Before a step that is not the first, the device idle, the issuer in that step: makes the graph. The buffers are
  /// taken to lie where they lay in the step before; where that turns out wrong, the step goes on op by op.
  void prepare_graph(Issuer& issuer);
  /// Holds all streams; base event behind it. `gate` null: only the base event.
  void start(const StartGate* gate, int step);
  /// Issues ops [first, last).
  void enqueue(Issuer& issuer, std::uint32_t first, std::uint32_t last);
  /// Waits for all streams.
  void finish();

 private:
  void device_op(Issuer& issuer, std::uint32_t op);
  void wait_for(std::uint32_t dep, void* stream);
  bool graph_runs(std::uint32_t first, std::uint32_t last) const;
  void host_op(Issuer& issuer, std::uint32_t op);
  void allocate(std::uint32_t op, void* stream);
  void release(const Op& op, void* stream);
  void poison(void* at, Bytes bytes, void* stream) const;
  bool has_ended(OpId op) const;
  const Plan& plan() const { return *program_->plan; }
  void* stream_of(StreamId stream) const { return stream_of_[stream.index]; }
  void make_streams();
  void look_up_addresses();

  const Program* program_;
  const ExecuteOptions& options_;
  const IssuePlan* issue_;
  DeviceMemory& memory_;
  std::vector<Stream> streams_;   // by StreamKind; none where no plan had one yet, and for the host's
  std::vector<void*> stream_of_;  // by StreamId of the present plan
  static constexpr auto compute_ = static_cast<std::size_t>(StreamKind::compute);
  StepClock clock_;
  std::function<bool(OpId)> ended_;
  LiveMeter live_;
  std::uint32_t issued_ = 0;  // ops of this step so far
  bool timed_ = true;
  bool poison_releases_ = false;

  std::optional<StepGraph> graph_;
  std::vector<void*> addresses_;  // by buffer: where it lay when it was last alive
  bool graph_ready_ = false;      // for this step, and addresses are still those
  bool graph_launched_ = false;   // in this step
  bool capturing_ = false;
};

}  // namespace ebb::replay
