// every_place_is_inside(): independent of how the places were found.
#include <algorithm>

#include "replay/placement.hpp"
#include "replay/program.hpp"

namespace ebb::replay {

namespace {

struct Checker {
  const Program& program;
  Bytes parameter_bytes;
  bool inside = true;

  const Plan& plan() const { return *program.plan; }
  const Precision& types() const { return plan().precision; }

  void require(bool condition) { inside = inside && condition; }

  /// `numel` elements of `size` bytes, `at` bytes into something of `bytes`.
  void span(Bytes at, Numel numel, std::int64_t size, Bytes bytes) {
    require(at.value >= 0 && numel.value >= 0 && at <= bytes && numel.value <= (bytes - at).value / size);
  }
  void device(BufferId buffer, Bytes at, Numel numel, std::int64_t size) {
    const bool known = buffer.index < plan().buffers.size() && plan().buffers[buffer.index].memory == Memory::device;
    require(known);
    if (known) span(at, numel, size, plan().buffers[buffer.index].bytes);
  }
  void pinned(Bytes at, Numel numel, std::int64_t size) { span(at, numel, size, program.pinned); }
  void elements(ElementRange range, Numel all) {
    require(range.begin >= 0 && range.begin <= range.end && range.end <= all.value);
  }

  void operator()(const Nothing&) {}
  void operator()(const HostWork&) {}
  void operator()(const Copy& copy) {
    for (const Transfer& transfer : copy.transfers) {
      device(transfer.device.buffer, transfer.device.at, {transfer.bytes.value}, 1);
      pinned(transfer.host_at, {transfer.bytes.value}, 1);
    }
  }
  void operator()(const DeviceAdam& adam) {
    Numel all{0};
    for (const StateRun& run : adam.runs) {
      const Numel numel = run.elements.numel();
      elements(run.elements, program.owned);
      device(adam.moments, run.exp_avg, numel, size_of(types().exp_avg));
      device(adam.moments, run.exp_avg_sq, numel, size_of(types().exp_avg_sq));
      device(adam.masters, run.master, numel, 4);
      device(adam.grads, run.grad, numel, size_of(adam.grad_type));
      if (adam.params.valid()) device(adam.params, run.param, numel, size_of(types().params));
      all += numel;
    }
    if (adam.foreach) device(adam.scratch, {0}, all, 4);
  }
  void operator()(const HostAdam& adam) {
    for (const StateRun& run : adam.runs) {
      elements(run.elements, program.owned);
      span(run.exp_avg, run.elements.numel(), 4, program.pageable);
      span(run.exp_avg_sq, run.elements.numel(), 4, program.pageable);
      pinned(run.master, run.elements.numel(), 4);
      pinned(run.grad, run.elements.numel(), 4);
    }
  }
  void operator()(const Cast& cast) {
    for (const CastRun& run : cast.runs) {
      device(cast.from, run.from, run.numel, size_of(cast.from_type));
      device(cast.to, run.to, run.numel, size_of(cast.to_type));
    }
  }
  void gradients(BufferId grads, BufferId norm, Dtype type, const std::vector<GradRun>& runs) {
    device(norm, {0}, {3}, 4);
    for (const GradRun& run : runs) {
      elements(run.elements, program.owned);
      device(grads, run.at, run.elements.numel(), size_of(type));
    }
  }
  void operator()(const Norm& norm) { gradients(norm.grads, norm.norm, norm.type, norm.runs); }
  void operator()(const Clip& clip) { gradients(clip.grads, clip.norm, clip.type, clip.runs); }
  void operator()(const ZeroGrads& zero) { device(zero.grads, {0}, program.padded, size_of(types().grads)); }
  void operator()(const BucketCollective& all) {
    if (all.bytes.empty()) device(all.buffer, {0}, program.padded, size_of(all.type));
    for (const BucketCollective::Part& part : all.bytes) device(part.buffer, part.at, {part.bytes.value}, 1);
    for (const ElementRange& bucket : all.buckets) elements(bucket, program.padded);
  }
  void operator()(const NormCollective& norm) { device(norm.norm, {0}, {3}, 4); }
  void operator()(const Stand& stand) {
    elements(stand.range, program.padded);
    device(stand.activations, {0}, {0}, 1);
    if (stand.fills()) return;
    device(program.params, {0}, {parameter_bytes.value}, 1);
    device(program.grads, {0}, program.padded, size_of(types().grads));
  }

  void operator()(const Zero& zero) {
    for (const Zero::Part& part : zero.parts) device(zero.buffer, part.at, {part.bytes.value}, 1);
  }
  void operator()(const HostMasters& masters) {
    for (const HostMasters::Run& run : masters.runs) {
      elements({run.at.value, (run.at + run.numel).value}, program.padded);
      pinned(run.host_at, run.numel, 4);
    }
  }
  void operator()(const Store& store) { pieces(store.pieces); }
  void operator()(const Fetch& fetch) { pieces(fetch.pieces); }
  void pieces(const std::vector<CheckpointPiece>& all) {
    for (const CheckpointPiece& piece : all) {
      require(piece.shard < plan().shards.size());
      if (piece.shard < plan().shards.size())
        elements({piece.first.value, (piece.first + piece.numel).value}, plan().shards[piece.shard].numel);
      span(piece.host_at, piece.numel, size_of(piece.type),
           piece.host == Memory::pinned ? program.pinned : program.pageable);
    }
  }

  /// The runs' elements, and where fp32 masters (or `size` bytes an element) and largest values lie.
  void quantized(const std::vector<QuantizedRun>& runs, BufferId masters, std::int64_t size, BufferId largest) {
    require(program.quantized.has_value());
    for (const QuantizedRun& run : runs) {
      const bool known = program.quantized && run.quantized < program.quantized->parameters.size();
      require(known);
      if (!known) return;
      const QuantizedParameter& q = program.quantized->parameters[run.quantized];
      elements({run.first, run.first + run.numel.value}, {q.rows * q.columns});
      device(program.params, q.row, {q.rows * q.columns}, 1);
      if (masters.valid()) device(masters, run.master, run.numel, size);
      if (largest.valid()) device(largest, run.largest, {q.largest}, 4);
    }
  }
  void operator()(const FindLargest& find) { quantized(find.runs, find.masters, 4, find.largest); }
  void operator()(const LargestCollective& all) { device(all.largest, {0}, all.numel, 4); }
  void operator()(const Quantize& quantize) {
    quantized(quantize.scales, BufferId::none(), 4, quantize.largest);
    quantized(quantize.runs, quantize.masters, 4, quantize.largest);
  }
  void operator()(const Dequantize& dequantize) {
    quantized(dequantize.runs, dequantize.to, size_of(types().params), BufferId::none());
  }
  void operator()(const MakeColumns& make) {
    require(program.quantized.has_value() && program.quantized->columns.valid());
    for (const std::uint32_t q : make.quantized) {
      const bool known = program.quantized && q < program.quantized->parameters.size();
      require(known);
      if (!known) return;
      const QuantizedParameter& what = program.quantized->parameters[q];
      device(program.quantized->columns, what.column, {what.rows * what.columns}, 1);
    }
  }

  void place(const StatePlace& place) {
    elements(place.elements, program.owned);
    require(place.at.value >= 0 && place.at + place.elements.numel() <= program.padded);
    const std::int64_t size = place.state == kMaster ? 4 : bytes_per_element(types(), place.state);
    if (place.on_device)
      device(place.device.buffer, place.device.at, place.elements.numel(), size);
    else
      span(place.host_at, place.elements.numel(), size,
           place.host == Memory::pinned ? program.pinned : program.pageable);
  }
};

/// Sorted by first element, the places of `state` go on from each other over all owned elements.
bool covers_once(const std::vector<StatePlace>& places, StateBits state, Numel owned) {
  std::vector<ElementRange> ranges;
  for (const StatePlace& place : places)
    if (place.state == state) ranges.push_back(place.elements);
  std::sort(ranges.begin(), ranges.end(), [](ElementRange a, ElementRange b) { return a.begin < b.begin; });
  std::int64_t behind = 0;
  for (const ElementRange& range : ranges) {
    if (range.begin != behind) return false;
    behind = range.end;
  }
  return behind == owned.value;
}

}  // namespace

bool every_place_is_inside(const Program& program) {
  Checker checker{program, ParameterBytes(*program.plan).bytes()};
  checker.require(program.actions.size() == program.plan->ops.size());
  for (const Action& action : program.actions) std::visit(checker, action);
  for (const std::vector<StatePlace>* places : {&program.before, &program.after}) {
    for (const StatePlace& place : *places) checker.place(place);
    for (const StateBits state : {kExpAvg, kExpAvgSq, kMaster}) {
      const bool none =
          std::none_of(places->begin(), places->end(), [&](const StatePlace& place) { return place.state == state; });
      if (none && program.plan->part != LifePart::step) continue;  // it does not exist there yet
      checker.require(covers_once(*places, state, program.owned));
    }
  }
  return checker.inside;
}

}  // namespace ebb::replay
