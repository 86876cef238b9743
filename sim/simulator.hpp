// Simulator: runs the Plans of the ranks of one host through time together, again and again, in storage that it keeps.
//
// How it works. A rank is a host thread and its streams.
//   The host thread walks the plan in program order. An op on a host stream runs on it; any other op is issued, which
//   costs the calls that it takes (OpCost::issue), and can start no earlier than its first call has returned nor end
//   before its last has. At a host op that waits for the device the thread waits.
//   A stream executes what has been issued to it in order, so only its first op not ended matters. That op looks at its
//   dependencies one by one; at the first that has not ended, its stream goes to sleep on it and is woken when it ends.
//   Dependencies are therefore looked at about once each, and nothing scans the plan again.
// An op with a known duration is settled the moment all it waits for is: its end may lie in the simulated future. What
// shares links (copies, collectives, kernels near the limit of HBM) goes to the FlowEngine, the only place where time
// passes event by event. A collective goes there once every rank of the host that takes part has come to it; ranks on
// other hosts are taken to come along. Results depend on ticks, ranks and op ids alone, so that any order of waking
// gives the same bits.
//
// Storage: 24 bytes an op and rank, and the ticks of the timeline are 16 of them.
// Not here: memory (models/timeline.hpp, summarize) and hazards (the planner's verify).
#pragma once

#include <cstdint>
#include <vector>

#include "models/cluster.hpp"
#include "models/plan.hpp"
#include "models/timeline.hpp"
#include "sim/fabric.hpp"
#include "sim/flow_engine.hpp"
#include "sim/op_cost.hpp"
#include "sim/rank_run.hpp"
#include "sim/simulate.hpp"
#include "sim/symmetry.hpp"

namespace ebb::sim {

/// The ranks of one host. Places of one class behave alike: they run the same plan, and see the same classes behind
/// their switch, in their socket and in their groups (symmetry.hpp finds such classes).
struct HostRuns {
  std::vector<const Plan*> plans;             // by class
  std::vector<std::uint32_t> class_of_place;  // by place; place p is global rank first_rank + p
  std::int64_t first_rank = 0;
};

class Simulator {
 public:
  /// The predicted timeline of `plan` into `out`, whose storage is reused. An op on a link starts when its lane takes
  /// it, which may be after all it depends on. Allocates only when the plan is larger than those before it.
  /// Preconditions: every dependency is an earlier op; streams and dependency lists exist; a group's collectives are on
  /// one stream; the cluster's figures that the plan uses are > 0.
  void run(const Plan& plan, const Cluster& cluster, const Sharing& sharing, Timeline& out);

  /// The same for every class of a host, together. Also: all members of a group issue the same collectives in the same
  /// order.
  void run(const HostRuns& host, const Cluster& cluster, std::vector<Timeline>& out);

 private:
  struct Arrival {
    std::uint32_t rank = 0;
    std::uint32_t op = 0;
  };
  /// The ranks of this host that meet in collectives.
  struct Group {
    GroupForm form;
    Ticks ready{0};      // of those who wait
    Ticks least_end{0};  // their last calls
    std::vector<Arrival> waiting;
  };
  /// A rank's part in a group.
  struct Member {
    GroupForm form;
    std::uint32_t group = 0;
    double wire = 0;  // the most of its collectives: see GroupShape
    double host_link = 0;
  };

  void start(const Cluster& cluster, std::int64_t ranks);
  static std::vector<Member>::iterator find_member(std::vector<Member>& members, const Op& op);
  void find_groups(const HostRuns* host, const Plan& plan, std::uint32_t rank);
  std::uint32_t group_of(const HostRuns* host, std::uint32_t rank, const Member& member);
  void run_all();
  void run_awake();
  void start_op(std::uint32_t rank, const RankRun::Ready& ready);
  void arrive(std::uint32_t rank, const RankRun::Ready& ready);
  void finish(const FlowEngine::Ended& ended);

  OpCost cost_;
  Fabric fabric_;
  FlowEngine engine_;
  std::vector<RankRun> ranks_;  // by class; more than in use
  std::size_t count_ = 0;       // in use
  std::vector<std::uint32_t> classes_;
  std::vector<Group> groups_;                   // more than in use
  std::vector<GroupShape> shapes_;              // by group, in use
  GroupShape shape_;                            // scratch
  std::vector<std::vector<Member>> groups_of_;  // by class
  std::vector<FlowEngine::Ended> ended_;
};

}  // namespace ebb::sim
