// Plan: one phase-labelled program for one rank, as plain data. The planner is its only writer; verify,
// sim::simulate, replay::execute, the CPU reference and reports read it, and none knows another.
//
// Order of execution. An op may start when the op before it on the same stream and every op in its
// `deps` have ended. `ops` is topologically ordered. The host thread is a stream too: what it issues
// later depends on it explicitly.
//
// Memory. A buffer with `initial` exists before the first op. Otherwise its `allocate` op starts its
// life and its `release` op ends it. A release may name `after`: the storage is handed back only once
// that op has ended as well (torch's record_stream), while "allocated" already counts it as gone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/ids.hpp"
#include "models/policy.hpp"
#include "models/precision.hpp"
#include "models/units.hpp"

namespace ebb {

enum class Phase : std::uint8_t { init, load, first_step, forward, backward, finalize, step, gather, save, skip };
inline constexpr int kPhaseCount = 10;
std::string_view name_of(Phase phase);

/// Which part of a job's life a plan is. Plans of one rank follow each other: a buffer that is alive when one ends is
/// `initial` in the next, under the same name.
enum class LifePart : std::uint8_t {
  step,         // the steady training step
  init,         // the optimizer is built: parameters are there, masters come (unless the optimizer makes them itself)
  load,         // after init: the state of a checkpoint
  load_params,  // after init: only the parameters of a checkpoint; masters are made from them
  reload,       // between steps: the state of a checkpoint replaces what is there
  first_step,   // moments come into being
  first_skip,   // as first_step up to the host's look at the gradient norm, which is not finite
  skip,         // the same for step
  save,
};
inline constexpr int kPartCount = 9;
std::string_view name_of(LifePart part);

/// Where a buffer lives.
enum class Memory : std::uint8_t { device, pinned, pageable };
std::string_view name_of(Memory memory);

/// What a buffer is for, so that a replay knows what its bytes mean.
enum class Role : std::uint8_t {
  other,        // bytes that only take room: activations, workspaces, scratch
  params,       // model parameters in Precision::params, padded elements (Plan::buckets)
  grads,        // gradients in Precision::grads, padded elements
  grad_copies,  // fp32 copies of the gradients of owned elements, packed
  state,        // optimizer state: Buffer::states of Buffer::holds
  norm,         // the sum of squares of the gradients: one fp32
  staging,      // fp32 elements on their way to or from the host, one shard at a time
  checkpoint,   // pinned: what a save writes from or a load reads into, for state that is not in the host store
  scales,       // of quantised parameters: row-wise scales (and those of column-wise copies that always stay)
  columns,      // column-wise copies of quantised parameters, with their scales
  largest,      // fp32 largest absolute values of Buffer::parameters, one after another
};
std::string_view name_of(Role role);

/// Which states an op moves or updates, or a buffer holds; a bit set.
enum StateBits : std::uint8_t { kExpAvg = 1, kExpAvgSq = 2, kMaster = 4, kGrads = 8, kParams = 16 };
inline constexpr std::uint8_t kMoments = kExpAvg | kExpAvgSq;
inline constexpr std::uint8_t kAllState = kMoments | kMaster;

/// Elements [begin, end) of the rank's owned elements, packed in optimizer order (see Plan::shards).
struct ElementRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  Numel numel() const { return {end - begin}; }
  bool operator==(const ElementRange&) const = default;
};

struct Buffer {
  std::string name;
  Memory memory = Memory::device;
  Bytes bytes{0};
  bool initial = false;  // exists before the plan starts and outlives it unless released
  /// Not alive when this phase ends: a window of the optimizer step, or state that must be away by then. It may live
  /// again afterwards.
  std::optional<Phase> ends_with = std::nullopt;
  Role role = Role::other;
  std::uint8_t states = 0;  // StateBits that it holds (role state)
  ElementRange holds{};     // ... of these owned elements; empty: of the op's range, as in a slot that is reused
  std::vector<std::uint32_t> parameters = {};  // role largest: whose (into Plan::parameters)
  bool packed = false;  // its states lie one after another without a gap, each over the whole range; otherwise
                        // shard by shard, each tensor at a multiple of 256 bytes

  bool operator==(const Buffer&) const = default;
};

enum class StreamKind : std::uint8_t { host, compute, h2d, d2h, comm };
std::string_view name_of(StreamKind kind);

struct Stream {
  std::string name;
  StreamKind kind = StreamKind::compute;

  bool operator==(const Stream&) const = default;
};

enum class OpKind : std::uint8_t {
  allocate,    // begins the life of `buffer`
  release,     // ends it (see `after`)
  copy_h2d,    // `bytes` in `calls` pieces, host memory of kind `host` to device
  copy_d2h,    // ... device to host
  kernel,      // memory-bound kernel `work` that moves `bytes` of device memory in `calls` launches
  collective,  // `work` over `members` ranks; `bytes` is NCCL's total size S
  compute,     // forward or backward stand-in of a given `duration`
  host_work,   // CPU time: `work` says which cost, `calls` how often; `bytes` for host Adam
  host_wait,   // the host blocks until its deps have ended
};
std::string_view name_of(OpKind kind);

/// What a kernel, collective or host_work op does; selects the cluster's rate or cost.
enum class Work : std::uint8_t {
  none,
  adam,          // fused Adam
  adam_foreach,  // unfused Adam
  cast,          // master weights to model parameters
  grad_norm,
  clip,
  zero_grads,
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all,
  chunk_overhead,  // host: calls.chunk
  tensor_scan,     // host: calls.tensor_scan
  launch,          // host: calls.launch
  cpu_adam,        // host: Adam on the CPU over `bytes`
  pin,             // host: pins `bytes` in `calls` blocks
  zero_state,      // `states` of `range` become 0: moments come into being
  make_masters,    // kernel: fp32 of the parameters; host work: fp32 of the initial values, which the host keeps (FP8)
  find_largest,    // largest absolute values of updated masters, into a buffer of role largest (which it does not zero)
  quantize,        // masters into quantised parameters, by the scales that follow from the largest values
  dequantize,      // quantised parameters of `range` in the model's type, into a buffer of role staging
  make_columns,    // column-wise copies of quantised parameters
  store,           // host: `bytes` into the checkpoint that is being written
  fetch,           // host: `bytes` out of the checkpoint that is being read
};
std::string_view name_of(Work work);

inline constexpr std::uint32_t kNoChunk = 0xffffffffU;

struct Op {
  OpKind kind = OpKind::compute;
  Phase phase = Phase::forward;
  Work work = Work::none;
  std::uint8_t states = 0;       // StateBits
  Memory host = Memory::pinned;  // copies: the host side
  bool expert = false;           // collectives of parameters and gradients: of the expert buckets, else the others
  StreamId stream{};
  std::uint32_t chunk = kNoChunk;
  std::uint32_t calls = 1;       // pieces of a copy, launches of a kernel, repetitions of host work
  std::uint32_t members = 1;     // ranks of a collective ...
  std::uint32_t stride = 1;      // ... so many global ranks apart (see group_of)
  std::uint32_t domains = 1;     // NVLink domains these ranks are spread over
  std::uint32_t deps_begin = 0;  // into Plan::deps
  std::uint32_t deps_count = 0;
  BufferId buffer{};  // allocated, released, or the device buffer read and written
  /// Copies, store, fetch, make_masters on the host: a buffer of role checkpoint in place of the host's own state.
  /// There lie `states` of `range`, state by state in the order of StateBits (parameters last), packed.
  BufferId host_buffer{};
  OpId after{};  // release only: the storage comes back no earlier than this op's end
  Bytes bytes{0};
  ElementRange range{};  // copies of state and Adam: which elements; compute: which padded ones, empty: all of them,
                         // or with no states none (a filler: it only takes time and overwrites its activations)
  Ticks duration{0};     // compute: how long; host_work of a framework: what it costs (the cluster's calls)

  bool operator==(const Op&) const = default;
};

/// A parameter that the rank has in memory, whoever owns its state. In files only (describe_parameters).
struct PlanParameter {
  std::string name;                 // unique in the whole model: with its place in tensor and expert parallelism
  std::vector<std::int64_t> shape;  // row-major; of this rank's part
  Numel at{0};                      // its first element among the padded elements; the others follow
  bool quantized = false;
  bool expert = false;

  Numel numel() const {
    Numel all{1};
    for (const std::int64_t extent : shape) all.value *= extent;
    return all;
  }
  bool operator==(const PlanParameter&) const = default;
};

/// One shard of the rank in optimizer order; its elements follow those of the shard before it.
struct PlanShard {
  std::string name;
  Numel numel{0};
  Numel at{0};                  // its first element among the padded elements
  std::uint32_t parameter = 0;  // into Plan::parameters, where there are any
  Numel offset{0};              // its first element in the parameter

  bool operator==(const PlanShard&) const = default;
};

/// Padded elements [begin, end) that a collective moves as one; its ranks own equal parts of it in rank order.
struct PlanBucket {
  Numel begin{0};
  Numel end{0};
  bool expert = false;
  bool quantized = false;  // one byte an element; buckets of other types lie in the same buffer, one after another

  Numel numel() const { return end - begin; }
  bool operator==(const PlanBucket&) const = default;
};

/// The ranks of a collective: first, first + stride, ... (`members` of them).
struct CommGroup {
  std::int64_t first = 0;
  std::int64_t stride = 1;
  std::int64_t members = 1;

  constexpr auto operator<=>(const CommGroup&) const = default;
};

struct Plan {
  std::string job;
  Candidate candidate;
  std::int64_t rank = 0;
  LifePart part = LifePart::step;
  Precision precision;                    // the types that the policy works in
  std::vector<PlanBucket> buckets;        // ascending, without gaps: all padded elements in gradient order
  std::vector<PlanParameter> parameters;  // ascending by place
  std::vector<PlanShard> shards;
  std::vector<Stream> streams;
  std::vector<Buffer> buffers;
  std::vector<Op> ops;
  std::vector<OpId> deps;  // all dependency lists, one after another

  std::span<const OpId> deps_of(const Op& op) const { return {deps.data() + op.deps_begin, op.deps_count}; }
};

/// Bytes of one element of a single state, gradient or parameter bit in these types.
constexpr std::int64_t bytes_per_element(const Precision& precision, StateBits state) {
  switch (state) {
    case kExpAvg:
      return size_of(precision.exp_avg);
    case kExpAvgSq:
      return size_of(precision.exp_avg_sq);
    case kMaster:
      return precision.master_bytes();
    case kGrads:
      return size_of(precision.grads);
    case kParams:
      return size_of(precision.params);
  }
  return 0;
}

/// The group that the plan's rank forms with others in a collective. Rank orders such as "tp-cp-ep-dp-pp" start every
/// group at a multiple of members * stride, plus the rank's place below the stride.
constexpr CommGroup group_of(const Plan& plan, const Op& op) {
  const std::int64_t place = plan.rank / op.stride % op.members;
  return {plan.rank - place * op.stride, op.stride, op.members};
}

}  // namespace ebb
