// CollectiveCost: how long a collective takes once all its members are ready, by NCCL's own cost model.
//
// NCCL takes, of the algorithms (ring, tree; PAT with one member a node) and protocols (LL, LL128, Simple) that are
// possible, the one whose
//
//     T = L + S / B
//
// is least, and so does this (ncclTopoGetAlgoTime in NCCL v2.28.3 src/graph/tuning.cc). S is the total size as NCCL
// counts it: the gathered tensor of an all-gather, the input of a reduce-scatter. With n members on k nodes, a bus of
// `bus` GB/s, steps = 2 (n - 1) for all-reduce and n - 1 otherwise, and of them hops = 2 (k - 1) or k - 1 between
// nodes:
//
//     ring  L = base + (steps - hops) local + hops remote,       B = limit n / steps, limit = bus; LL: at most bus / 2
//                                                                and the LL limit; LL128: 0.92 bus and its limit
//     tree  L = base + 2 ((n / k - 1) local + log2(k) remote),   B = limit / 2 c(S), limit = 0.92 bus and a channel's;
//           all-reduce only                                      LL: / 3.8, LL128: * 7/9 in one node, else 120/128
//     PAT   L = base + log2(k) remote / 3.5 + 2.8 n,             B = 0.75 bus; all-gather, reduce-scatter, n = k
//
// Tables and limits: nccl_tables.hpp. LL128 needs NVLink. Balanced trees are assumed (NCCL's factor 0.85 for others
// is left out), NICs add no latency of their own, and collectives are not aggregated.
//
// All-to-all is no collective of NCCL's but n sends and receives of S / n a member, where S is what a member sends in
// all. NCCL's tables do not cover it. Assumed: the base and one step of a Simple ring, then every pair at once, so that
// the slower of the NVLink part S (n / k - 1) / n and the network part S (n - n / k) / n decides.
//
// A call has a cost of its own that NCCL's tables leave out, so in the end L is at least interconnect.collective_floor.
//
// Nodes and rates, from the Cluster:
//   one NVLink domain        bus = nvlink. PCIe's tables where the GPU can have no NVLink (nvlink is then the rate of
//                            peers over PCIe)
//   several domains, a host  PCIe joins a host's GPUs and its NVLinks do not help, since a ring is as fast as its
//   has more GPUs than one   slowest link: nodes are hosts, and the bus is what one copy in and one out at once leave
//                            each direction of host_link, less 20 % for NCCL's protocol (NVIDIA/nccl-tests issue 212)
//   several domains else     nodes are domains
//   between nodes            every member has its own network link and channels spread over them: network n / k, and no
//                            more than inside a node
// nvlink_latency and network_latency are the time of one step of a Simple ring, inside a domain and between nodes.
// Steps of other protocols and of trees keep NCCL's proportion to it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "models/cluster.hpp"
#include "models/plan.hpp"
#include "sim/nccl_tables.hpp"

namespace ebb::sim {

/// A collective as one member sees it: first `latency_ticks` in which nothing is loaded, then a flow.
struct CollectiveTime {
  double latency_ticks = 0;
  double transfer_ticks = 0;            // when nothing else is on the way
  double wire_bytes_per_tick = 0;       // payload that each member sends, and receives, during the transfer
  double host_link_bytes_per_tick = 0;  // of these, each way over the GPU's host link: to a network card or a peer
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;

  double ticks() const { return latency_ticks + transfer_ticks; }
};

class CollectiveCost {
 public:
  CollectiveCost() = default;
  /// Figures that no collective of a plan uses may be 0.
  explicit CollectiveCost(const Cluster& cluster);

  /// The way NCCL chooses. One member: nothing. A rate of 0 takes forever (infinitely many ticks), no bytes only the
  /// latency. Preconditions: a collective `op` with 1 <= domains <= members, stride >= 1, bytes >= 0.
  CollectiveTime operator()(const Op& op) const;

  /// One given way, whether NCCL would choose it or not. Precondition: one of those above for `op.work`.
  CollectiveTime with(const Op& op, Algorithm algorithm, Protocol protocol) const;

 private:
  /// Where the members of a group are.
  struct Group {
    double members;
    std::int64_t nodes;
    Transport local;   // inside a node
    double local_bus;  // GB/s
    double bus;        // GB/s, of a ring through all members

    double per_node() const { return members / static_cast<double>(nodes); }
    bool alone() const { return static_cast<double>(nodes) == members; }  // one member a node
    std::size_t scale() const { return static_cast<std::size_t>(nodes <= 2 ? nodes - 1 : 2); }
  };
  /// T = latency + bytes / (1000 bandwidth), in us and GB/s.
  struct Way {
    double latency = 0;
    double bandwidth = 0;
    Algorithm algorithm = Algorithm::ring;
    Protocol protocol = Protocol::simple;
  };

  Group place(const Op& op) const;
  double step(Transport transport, Algorithm algorithm, Protocol protocol) const;
  double remote_step(const Group& group, Algorithm algorithm, Protocol protocol) const;
  double ll_limit(const Group& group) const;
  bool ll128(const Group& group) const;
  Way ring(const Op& op, const Group& group, Protocol protocol) const;
  Way tree(const Op& op, const Group& group, Protocol protocol) const;
  Way pat(const Group& group) const;
  Way pairs(const Group& group) const;
  CollectiveTime time(const Op& op, const Group& group, const Way& way) const;

  NcclGpu gpu_;
  std::int64_t gpus_per_host_ = 1;
  std::int64_t nvlink_domain_ = 1;
  double nvlink_ = 0;  // GB/s
  double pcie_ = 0;
  double network_ = 0;
  std::array<double, 3> step_scale_{};  // by Transport: the cluster's latency of a Simple ring's step / NCCL's
  double floor_ = 0;                    // us
};

}  // namespace ebb::sim
