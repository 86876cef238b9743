// Program: a Plan with every byte found. For each op of the plan the concrete transfers, runs and ranges that it works
// on, as offsets into buffers and into the host store. Both executors read it: reference() with the CPU references of
// kernels/, execute() with their launchers; so what the reference proves about order and addresses holds for the GPU.
//
// Rules of placement.
//   Device state: a buffer with `states` holds them for `holds`, or for the op's range where that is empty. Not packed:
//     state by state (exp_avg, exp_avg_sq, master), shard by shard of that range, each tensor at the next multiple of
//     256 bytes. Packed: state by state without gaps over the whole range.
//   State that an op needs and that its own buffer does not hold (windowed's masters) lies in the one buffer that holds
//     that state for these elements and is alive then.
//   Parameters and gradients: padded elements; a shard's elements begin at PlanShard::at.
//   Gradient copies: fp32, packed, owned elements of `holds`. Staging: fp32, from its first byte.
//   Host: every state that some op copies or steps there. Packed plans: one region, chunk by chunk (the ranges of the
//     copies), laid out like the slot. Others: a block a shard and state, rounded up to a power of two as torch's
//     pinned allocator does, so that the pinned bytes are the plan's.
// Not here: addresses, streams, time; what the numbers are (training.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "models/plan.hpp"

namespace ebb::replay {

/// A byte range of a device buffer.
struct DevicePlace {
  BufferId buffer;
  Bytes at{0};
};

/// One asynchronous copy of an op.
struct Transfer {
  DevicePlace device;
  Bytes host_at{0};  // into the pinned part of the host store
  Bytes bytes{0};
};
struct Copy {
  bool to_device = false;
  std::vector<Transfer> transfers;  // Op::calls of them
};

/// A contiguous run of owned elements. Offsets are bytes from the start of the buffer (or host part) named beside.
struct StateRun {
  ElementRange elements;
  Bytes exp_avg{0};
  Bytes exp_avg_sq{0};
  Bytes master{0};
  Bytes grad{0};
  Bytes param{0};
};
/// Adam on the device, then, where `params` is valid, the parameter in the same pass.
struct DeviceAdam {
  bool foreach = false;  // nine unfused passes
  BufferId moments;
  BufferId masters;  // the parameters where they are their own masters
  BufferId grads;    // gradients or their copies
  BufferId params;   // none(): a cast follows
  BufferId scratch;  // foreach: 4 bytes an element
  Dtype grad_type = Dtype::fp32;
  std::vector<StateRun> runs;
};
/// Adam on the host: `exp_avg`, `exp_avg_sq` are offsets into the pageable part of the host store, `grad` and `master`
/// into the pinned part. All fp32.
struct HostAdam {
  std::vector<StateRun> runs;
};

/// Elements of one buffer converted into another.
struct CastRun {
  Numel numel{0};
  Bytes from{0};
  Bytes to{0};
};
struct Cast {
  BufferId from;
  BufferId to;
  Dtype from_type = Dtype::fp32;
  Dtype to_type = Dtype::bf16;
  std::vector<CastRun> runs;
};

/// Runs of gradient elements that a step's norm and clip cover, in owned order.
struct GradRun {
  ElementRange elements;
  Bytes at{0};
};
struct Norm {
  BufferId grads;
  BufferId norm;  // fp32 sum of squares at its first byte; norm, coefficient and flag behind it (training.hpp)
  Dtype type = Dtype::fp32;
  std::vector<GradRun> runs;
};
struct Clip {
  BufferId grads;
  BufferId norm;
  Dtype type = Dtype::fp32;
  std::vector<GradRun> runs;
};
struct ZeroGrads {
  BufferId grads;
};

/// A collective over padded elements, bucket by bucket, in place. Each member owns an equal part in the order of ranks.
struct BucketCollective {
  Work work = Work::all_gather;  // all_gather, reduce_scatter, all_reduce
  BufferId buffer;               // parameters or gradients
  Dtype type = Dtype::fp32;
  std::vector<ElementRange> buckets;  // of the whole buffer; all_reduce of an instance: the rank's own parts
  /// Where some buckets are quantised: all of them as bytes, in place of `buckets`. Of MXFP8 also those of its
  /// column-wise copies, which no rank could make from the row-wise ones.
  struct Part {
    BufferId buffer;
    Bytes at{0};
    Bytes bytes{0};
  };
  std::vector<Part> bytes = {};
};
/// Sums one fp32 over all members.
struct NormCollective {
  BufferId norm;
};

/// Forward or backward over the padded elements `range`, all of which are spelled out. Empty: a filler. It takes its
/// time and does to activations what the others do, but to nothing else, so that a plan may cut an op anywhere.
struct Stand {
  bool backward = false;
  ElementRange range;
  std::uint32_t micro = 0;  // counts the ops of this direction in the plan, without fillers: other numbers, other data
  BufferId activations;     // overwritten by forward; by a filler all of it
  Ticks duration{0};

  bool fills() const { return range.begin == range.end; }
};

struct HostWork {
  Ticks duration{0};
};

// Life: what parts of a plan beside the step do.

/// Bytes of a device buffer become 0.
struct Zero {
  BufferId buffer;
  struct Part {
    Bytes at{0};
    Bytes bytes{0};
  };
  std::vector<Part> parts;
};
/// Masters of the initial values, made on the host: fp32 of what the model's type holds of them (training.hpp).
struct HostMasters {
  struct Run {
    Numel at{0};  // padded element of the first
    Numel numel{0};
    Bytes host_at{0};  // in the pinned part
  };
  std::vector<Run> runs;
};
/// A piece of state (or of parameters) between host memory and a checkpoint. `shard`: into Plan::shards; its elements
/// are PlanShard::offset + first ... of the parameter.
struct CheckpointPiece {
  StateBits state = kMaster;
  std::uint32_t shard = 0;
  Numel first{0};  // element of the shard
  Numel numel{0};
  Dtype type = Dtype::fp32;
  Memory host = Memory::pinned;
  Bytes host_at{0};
};
struct Store {
  std::vector<CheckpointPiece> pieces;
};
struct Fetch {
  std::vector<CheckpointPiece> pieces;
};

// Quantised parameters (Program::quantized has their geometry).

/// Elements [first, first + numel) of a quantised parameter, row-major, whose masters lie from `master` on.
struct QuantizedRun {
  std::uint32_t quantized = 0;  // into Quantized::parameters
  std::int64_t first = 0;
  Numel numel{0};
  Bytes master{0};   // in the buffer of masters; dequantize: in the staging buffer
  Bytes largest{0};  // of the parameter's first largest value, in the buffer of role largest
};
struct FindLargest {
  BufferId masters;
  BufferId largest;
  std::vector<QuantizedRun> runs;
};
/// The maximum of fp32 numbers over all members; none of them is negative, nan counts as the largest.
struct LargestCollective {
  BufferId largest;
  Numel numel{0};
};
/// Scales of every parameter of the call from its largest values; then owned masters into rows (MXFP8: and columns).
struct Quantize {
  BufferId masters;
  BufferId largest;
  std::vector<QuantizedRun> scales;  // one a parameter of the call, owned or not: quantized and largest only
  std::vector<QuantizedRun> runs;    // owned
};
/// Into the model's type.
struct Dequantize {
  BufferId to;
  std::vector<QuantizedRun> runs;
};
struct MakeColumns {
  std::vector<std::uint32_t> quantized;
};
struct Nothing {};  // allocate, release, host_wait: the op itself says all

using Action = std::variant<Nothing, Copy, DeviceAdam, HostAdam, Cast, Norm, Clip, ZeroGrads, BucketCollective,
                            NormCollective, Stand, HostWork, Zero, HostMasters, Store, Fetch, FindLargest,
                            LargestCollective, Quantize, Dequantize, MakeColumns>;

/// One quantised parameter of [rows, columns]: e4m3 row by row, scales by recipe (planner/weight_bytes.hpp has the
/// shapes):
///   tensorwise  one fp32 1 / scale; the column-wise copy is the transpose, with the same scale
///   blockwise   fp32 1 / scale of each 128 x 128 tile, [ceil(R / 128), pad4(ceil(C / 128))]; column-wise: data and
///   scales
///               transposed, [ceil(C / 128), pad4(ceil(R / 128))]
///   mxfp8       a byte (E8M0) for 32 elements of a row, [pad128(R), pad4(ceil(C / 32))]; column-wise: quantised anew,
///               not transposed, a byte for 32 elements of a column, [pad4(ceil(R / 32)), pad128(C)]
struct QuantizedParameter {
  std::uint32_t parameter = 0;  // into Plan::parameters
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Bytes row{0};              // in the parameter buffer
  Bytes row_scales{0};       // in `scales`
  Bytes column{0};           // in `columns`
  Bytes column_scales{0};    // in `columns`; mxfp8: in `scales`
  std::int64_t largest = 0;  // fp32 numbers that its largest values take
};
struct Quantized {
  Fp8Recipe recipe = Fp8Recipe::none;
  BufferId scales;
  BufferId columns;                            // none: it has no column-wise copies
  std::vector<QuantizedParameter> parameters;  // ascending by place
};

/// Where a piece of state lies between steps. Its elements are consecutive padded elements too.
struct StatePlace {
  StateBits state = kMaster;
  ElementRange elements;
  Numel at{0};  // the padded element of the first: what random masters depend on
  bool on_device = false;
  DevicePlace device;
  Memory host = Memory::pinned;
  Bytes host_at{0};
};

struct Program {
  const Plan* plan = nullptr;   // outlives the program
  std::vector<Action> actions;  // by op id
  BufferId params;
  BufferId grads;
  Numel padded{0};
  Numel owned{0};
  float gradient_scale = 1;  // 1 / data-parallel size (of dense parameters, where there are some)
  Bytes pinned{0};           // of the host store, in blocks as torch rounds them or exact
  Bytes pageable{0};
  // Every state element of the rank once: where it must be when the plan begins, and where it is when it has ended (in
  // a steady step the same). Parts of a life have no place for state that does not exist then. Masters of fp32
  // parameters are the parameters, unless the host steps copies of them.
  std::vector<StatePlace> before;
  std::vector<StatePlace> after;
  /// The host_wait after which the host knows whether the gradients are finite (of the norm); none() in plans without
  /// one. In a skip plan everything up to it is as in the step's.
  OpId decision;
  Bytes staged{0};  // of `pinned`: its end, for buffers of role checkpoint
  std::optional<Quantized> quantized;
  std::vector<std::uint32_t>
      tensors;  // by buffer: how many tensors torch would allocate for it (Op::calls), at least 1
};

/// InputError, naming the op, for what no replay does yet (delayed FP8 and FP4 weights, remainders, fp16 or fp8
/// moments, Muon, cpu-adam with gradients that are not fp32) and for a plan that does not say where its state is.
/// `file`: for messages.
Program compile(const Plan& plan, const std::string& file);

/// One rank's plans of all parts, over one host store: its layout is that of the steady step. By LifePart; empty where
/// `plans` has none. What a part leaves alive is what the next begins with: InputError where names or bytes differ.
using LifePrograms = std::array<std::optional<Program>, kPartCount>;
LifePrograms compile_life(std::span<const Plan* const> plans, const std::string& file);

/// Every byte that an action or a place between steps names lies inside its buffer or part of the host store, and every
/// element inside the rank's. What compile() promises for any plan.
bool every_place_is_inside(const Program& program);

}  // namespace ebb::replay
