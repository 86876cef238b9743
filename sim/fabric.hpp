// Fabric: the links of one host, and how fast its flows run against each other.
//
// Who is here. GPUs sit at places 0, 1, ... of the host; places that behave alike form a class, and one flow stands for
// all its members (symmetry.hpp). A class has a lane for each thing it can do once at a time: copy to the device, copy
// from it, run a memory-bound kernel. A group of classes that communicate has a lane for its collectives.
//
// What flows share:
//   a copy              its direction of the GPU's host link; both directions together; then, for all GPUs behind them,
//                       the switch's uplink, the socket's root complex, memory of the sockets that hold its pinned
//                       bytes, the link between sockets, the host as a whole
//   a collective over
//   PCIe or network     both directions of the GPU's host link (peer and network card sit behind the same PCIe switch,
//                       so that it crosses no uplink: NVIDIA/nccl issue 1023)
//   a collective over
//   NVLink alone        nothing, but it slows down by copy_interference while host links are busy (NVIDIA/nccl issues
//                       1414 and 2218: lower-level resources)
//   a kernel            HBM, of which copies and collectives of its GPU take their part first: they are bound by far
//                       slower links, so that max-min sharing of HBM would not hold them back either
// Copies, weighted, and collectives on host links share max-min fair (max_min.hpp). Device-to-host weighs d2h_weight:
// reads of host memory wait for an answer, writes do not (nvbandwidth issues 11 and 53: 24 against 12 to 13 GB/s on
// PCIe 4).
//
// Rates depend on nothing but which flows are there, so that the engine remembers them (rate_memory.hpp).
// Not here: time, queues and latencies (flow_engine.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/cluster.hpp"
#include "models/plan.hpp"
#include "sim/max_min.hpp"

namespace ebb::sim {

enum class Direction : std::uint8_t { h2d = 0, d2h = 1 };
inline constexpr std::size_t kDirections = 2;

/// Classes whose ranks meet in a collective.
struct GroupShape {
  std::vector<std::uint32_t> classes;  // ascending
  double wire = 0;                     // bytes per tick that each member sends and receives, at most
  double host_link = 0;                // of these, each way over the GPU's host link; 0: it leaves that alone

  bool operator==(const GroupShape&) const = default;
};

/// HBM bytes of a collective for each byte on the wire: it reads, writes, and reads again what it reduces or forwards
/// (NVIDIA/nccl issue 1428 counts 2 to 3).
inline constexpr double kHbmPerWireByte = 2.5;

using FlowId = std::uint16_t;
inline constexpr FlowId kNoFlow = 0xffff;

class Fabric {
 public:
  /// `class_of_place`: by place; classes are numbered from 0 without gaps. Preconditions: at least one place; every
  /// limit > 0 (infinity: none). Allocates only when larger than before.
  void build(const Cluster& cluster, std::span<const std::uint32_t> class_of_place, std::size_t classes,
             std::span<const GroupShape> groups);

  std::size_t classes() const { return classes_; }
  std::size_t lanes() const { return lane_component_.size(); }
  static std::size_t copy_lane(std::size_t cls, Direction d) { return 3 * cls + static_cast<std::size_t>(d); }
  static std::size_t kernel_lane(std::size_t cls) { return 3 * cls + 2; }
  std::size_t group_lane(std::size_t group) const { return 3 * classes_ + group; }

  /// Lanes whose flows can change each other's rates have one component.
  std::size_t components() const { return component_lanes_.size(); }
  std::span<const std::uint32_t> lanes_of(std::size_t component) const { return component_lanes_[component]; }
  std::uint32_t component_of(std::size_t lane) const { return lane_component_[lane]; }

  /// A copy of `bytes` in all.
  FlowId copy_flow(std::size_t cls, Direction d, Memory host, Bytes bytes) const;
  FlowId kernel_flow(std::size_t cls, Work work) const;
  FlowId group_flow(std::size_t group) const { return static_cast<FlowId>(classes_ * flows_per_class_ + group); }
  /// What the flow does when it is alone, in bytes per tick.
  double alone(FlowId flow) const { return alone_[flow]; }
  /// False: kernels of this work are never slowed by copies and collectives.
  bool kernel_shares_hbm(Work work) const;

  /// Rates in bytes per tick of what flows on the lanes of `component`; kNoFlow: nothing. Both in the order of
  /// lanes_of(component). Kernels are left out (their lanes have rate 0): they hold nothing back.
  void solve(std::size_t component, std::span<const FlowId> flows, std::span<double> rates);
  /// The rate of a kernel of the class beside flows with these rates, as solve() gives them.
  double kernel_rate(FlowId kernel, std::size_t cls, std::span<const double> rates) const;
  bool is_kernel_lane(std::size_t lane) const { return lane < 3 * classes_ && lane % 3 == 2; }

 private:
  static constexpr std::uint32_t kNone = 0xffffffffU;
  enum Own : std::uint8_t { kOwnH2d, kOwnD2h, kOwnBoth, kOwnLinks };

  struct Row {
    double capacity = 0;
    std::size_t loads = 0;  // into loads_: kDirections values a class
  };
  enum class Rate : std::uint8_t { adam, adam_foreach, hbm };

  static Rate rate_of(Work work);
  void read_figures(const Cluster& cluster, std::span<const GroupShape> groups);
  void occupy(const Cluster& cluster, std::span<const std::uint32_t> class_of_place);
  void add_rows(const Cluster& cluster);
  template <class Load>
  void add_row(double capacity, Load load);
  void add_class(std::size_t cls, const HostLink& link);
  void add_groups(std::span<const GroupShape> groups);
  void find_components(std::span<const GroupShape> groups);
  void slow_collectives(std::size_t component, std::span<const FlowId> flows, std::span<double> rates) const;

  std::size_t classes_ = 0;
  std::size_t copy_flows_ = 0;       // a direction: one a size, and one from pageable memory
  std::size_t flows_per_class_ = 0;  // copies of both directions, then kernels
  double interference_ = 0;
  double hbm_ = 0;  // bytes per tick
  double kernel_rates_[3] = {};
  double busiest_ = 0;              // what copies and a collective may take of HBM at most
  std::vector<Bytes> sizes_;        // of copies: up to this one
  std::vector<double> size_loads_;  // by size: what a byte loads `both` with
  std::vector<Row> rows_;           // shared limits
  std::vector<double> loads_;
  std::vector<double> counts_;      // places of each class
  std::vector<double> in_switch_;   // switch x class
  std::vector<double> in_socket_;   // socket x class
  std::vector<std::uint32_t> own_;  // class x Own: links
  std::vector<GroupShape> groups_;
  std::vector<std::vector<std::uint32_t>> groups_of_;  // by class
  FlowSystem system_;
  std::vector<std::uint32_t> in_system_;  // by flow; kNone: it does not share max-min
  std::vector<double> alone_;             // by flow
  std::vector<std::uint32_t> lane_component_;
  std::vector<std::uint32_t> lane_index_;  // by lane: in lanes_of(its component)
  std::vector<std::vector<std::uint32_t>> component_lanes_;
  // Scratch.
  std::vector<LinkUse> uses_;
  std::vector<std::uint32_t> active_;
  std::vector<std::uint32_t> active_lane_;
  std::vector<double> active_rates_;
  std::vector<std::uint32_t> parent_;
};

}  // namespace ebb::sim
