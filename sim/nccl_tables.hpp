// NCCL's tuning tables: the latencies and bandwidth limits by which NCCL chooses how to run a collective.
//
// Source of every figure unless a line says otherwise: NCCL v2.28.3, src/graph/tuning.cc, as facts. v2.30.7 differs in
// what is used here only by the LL128 limit of a Blackwell channel in a ring (40.0 instead of 73.4). Left out: CollNet
// and NVLS, which need hardware or settings that Ebb does not assume (NVLS is off: NCCL_NVLS_ENABLE=0, which Megatron
// jobs often set; its bandwidth comes out of NCCL's topology search, not of a table), and Volta.
//
// Not here: the formulas (collective_cost.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace ebb::sim {

enum class Algorithm : std::uint8_t {
  tree,
  ring,
  pat,    // parallel aggregated trees: only with one member a node
  pairs,  // all-to-all: a send and a receive for each pair
};
enum class Protocol : std::uint8_t { ll, ll128, simple };
inline constexpr unsigned kProtocols = 3;

/// What two members that are neighbours in a ring talk over.
enum class Transport : std::uint8_t { nvlink, pcie, network };

template <class T>
using PerProtocol = std::array<T, kProtocols>;

/// us a collective, of tree and ring.
inline constexpr std::array<PerProtocol<double>, 2> kBaseLatency = {{{6.8, 14.0, 8.4}, {6.6, 14.0, 8.4}}};
inline constexpr double kPatBaseLatency = 8.0;
/// Of PAT, us a member, and by how much a network step is quicker than a tree's.
inline constexpr double kPatMemberLatency = 2.8;
inline constexpr double kPatNetworkSpeedup = 3.5;

/// us a step: [transport][tree, ring][protocol].
inline constexpr std::array<std::array<PerProtocol<double>, 2>, 3> kStepLatency = {{
    {{{0.6, 1.25, 4.0}, {0.6, 1.9, 3.4}}},
    {{{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}}},
    {{{5.0, 8.5, 14.0}, {2.7, 4.0, 14.0}}},
}};

/// us a ring step inside a node at least, when the ring leaves the node. 2 for AMD's x86 hosts; a Cluster does not say
/// which it has.
inline constexpr PerProtocol<double> kNetworkOverhead = {1.0, 1.0, 3.0};

/// Over several nodes a large all-reduce in a Simple ring takes so many times its latency (compute capability 8.0 on).
inline constexpr double kRingPlateau = 1.4;

/// What a tree reaches of its bandwidth: entry i from 64 << i bytes to twice that. Smaller and larger: all of it.
inline constexpr PerProtocol<std::array<double, 23>> kTreeCorrection = {{
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9},
}};

/// GB/s by the number of nodes: one, two, more.
using PerScale = std::array<double, 3>;

/// LL's limit over several nodes goes by the CPU in place of the GPU: Intel's here (AMD: 22.5 and 19.0).
inline constexpr PerScale kLlLimitOfCpu = {0, 39.0, 20.4};

struct ArchitectureLimits {
  double ll;            // GB/s of all channels together, in one node
  PerScale ring_ll128;  // GB/s a channel
  PerScale tree_ll128;
  PerScale tree;
  /// Channels of a ring over all NVLinks. Not a table of NCCL's but what its search ends at on eight A100 (12 x 20
  /// GB/s) and H100 (12 x 30); for Blackwell 24 x 30 is taken, unconfirmed. It decides only where a limit a channel
  /// binds, which is in no Cluster of the library.
  double channels;
};

/// Generations that NCCL has limits for. Ada (compute capability 8.9) counts as Ampere; so does, here, what is older.
enum class Architecture : std::uint8_t { ampere, hopper, blackwell };

inline constexpr std::array<ArchitectureLimits, 3> kArchitectureLimits = {{
    {87.7, {20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {24.0, 23.6, 17.8}, 12},
    {141.0, {36.7, 36.7, 36.7}, {36.7, 36.7, 29.0}, {38.7, 41.4, 36.0}, 12},
    {282.0, {73.4, 73.4, 73.4}, {55.6, 31.67, 20.0}, {70.0, 42.8, 24.0}, 24},
}};

struct NcclGpu {
  Architecture architecture = Architecture::hopper;
  bool nvlink = true;  // can have it

  bool operator==(const NcclGpu&) const = default;
};

/// From a product name such as Gpu::name ("NVIDIA H200"). A name that says nothing is taken for Hopper with NVLink.
NcclGpu nccl_gpu(std::string_view name);

}  // namespace ebb::sim
