// Copies, kernels, host work: the bytes of each (program.hpp).
#include <fmt/format.h>

#include <algorithm>

#include "replay/program_compiler.hpp"

namespace ebb::replay {

namespace {

constexpr Bytes kNormBytes{NormWords::kNonFinite + 4};

/// Sizes of one element in the arrays of a run; 0: it has none.
struct RunSizes {
  std::int64_t exp_avg, exp_avg_sq, master, grad, param;
};

/// Appends `run`, or lengthens the last one where everything goes on behind it.
void append(std::vector<StateRun>& runs, const StateRun& run, const RunSizes& size) {
  if (!runs.empty()) {
    StateRun& last = runs.back();
    const std::int64_t numel = last.elements.numel().value;
    const auto follows = [&](Bytes before, Bytes next, std::int64_t bytes) {
      return next.value == before.value + numel * bytes;
    };
    if (run.elements.begin == last.elements.end && follows(last.exp_avg, run.exp_avg, size.exp_avg) &&
        follows(last.exp_avg_sq, run.exp_avg_sq, size.exp_avg_sq) && follows(last.master, run.master, size.master) &&
        follows(last.grad, run.grad, size.grad) && follows(last.param, run.param, size.param)) {
      last.elements.end = run.elements.end;
      return;
    }
  }
  runs.push_back(run);
}

bool aligned(Bytes at, std::int64_t size) { return size == 0 || at.value % size == 0; }

}  // namespace

Action ProgramCompiler::action() {
  switch (op().kind) {
    case OpKind::allocate:
    case OpKind::release:
      begin_or_end_life();
      return Nothing{};
    case OpKind::copy_h2d:
    case OpKind::copy_d2h:
      return copy();
    case OpKind::kernel:
      return kernel();
    case OpKind::collective:
      return collective();
    case OpKind::compute:
      return stand();
    case OpKind::host_work:
      if (op().work == Work::cpu_adam) return host_adam();
      if (op().work == Work::make_masters) return masters_on_host();
      if (op().work == Work::store || op().work == Work::fetch) return store_or_fetch();
      return HostWork{op().duration};
    case OpKind::host_wait:
      if (op().buffer.valid() && buffer_of(op().buffer).role == Role::norm && !program_.decision.valid())
        program_.decision = {at_};
      return Nothing{};
  }
  reject("is of no known kind");
}

Action ProgramCompiler::kernel() {
  const auto norm_of_gradients = [&] {
    live(op().buffer, "the norm");
    if (buffer_of(op().buffer).role != Role::norm) reject("its buffer is none of a norm");
    room(op().buffer, kNormBytes);
    owned_range(op().range);
    return gradients_for(op().range);
  };
  switch (op().work) {
    case Work::adam:
    case Work::adam_foreach:
      return device_adam();
    case Work::cast:
      return cast();
    case Work::grad_norm: {
      const BufferId grads = norm_of_gradients();
      return Norm{grads, op().buffer, type_of_gradients(grads), grad_runs(grads)};
    }
    case Work::clip: {
      const BufferId grads = norm_of_gradients();
      return Clip{grads, op().buffer, type_of_gradients(grads), grad_runs(grads)};
    }
    case Work::zero_grads:
      return ZeroGrads{program_.grads};
    case Work::zero_state:
      return zero_state();
    case Work::make_masters:
      return masters_of_params();
    case Work::find_largest:
      return find_largest();
    case Work::quantize:
      return quantize();
    case Work::dequantize:
      return dequantize();
    case Work::make_columns:
      return make_columns();
    default:
      reject("is a kernel that is not replayed");
  }
}

/// One run a shard wherever the gradients lie: the norm's order of summation depends on the list of runs.
std::vector<GradRun> ProgramCompiler::grad_runs(BufferId grads) const {
  std::vector<GradRun> runs;
  for (const Piece& piece : owned_.pieces(op().range)) runs.push_back({piece.elements, gradient_at(grads, piece)});
  return runs;
}

// Copies

Action ProgramCompiler::copy() {
  if (op().host_buffer.valid()) return copy_staged();
  const std::uint8_t what = op().states;
  Copy copy;
  copy.to_device = op().kind == OpKind::copy_h2d;
  const std::vector<Piece> pieces = owned_.pieces(op().range);  // checked by find_host_state()
  if ((what & (kGrads | kParams)) != 0) {
    const bool params = what == kParams && copy.to_device;
    if (!params && !(what == kGrads && !copy.to_device)) reject("only gradients leave and parameters return by copies");
    if (op().buffer.valid() || params) {
      live(op().buffer, "staging");
      if (buffer_of(op().buffer).role != Role::staging) reject("its buffer is no staging buffer");
      room(op().buffer, bytes_of(op().range.numel(), 4));
    } else if (plan_.precision.grads != Dtype::fp32) {
      reject("gradients that are not fp32 leave without a conversion");
    }
    add_transfers(copy, params ? kParams : kGrads, pieces);
  } else {
    live(op().buffer, "state");
    const StateLayout& layout = layout_of(op().buffer, op().range);
    const std::uint8_t states = what & (masters_apart() ? kAllState : kMoments);
    if (states == 0 || !layout.holds(states, op().range)) reject("its buffer does not hold what it copies");
    const auto region = layout.packed() ? host_.region(states, op().range) : std::nullopt;
    if (region && states == layout.states() && layout.range() == op().range) {
      copy.transfers.push_back({{op().buffer, Bytes{0}}, *region, layout.bytes()});
    } else if (layout.packed() && host_.packed()) {
      add_packed(copy, states, layout);
    } else {
      for (const StateBits state : kStateOrder)
        if ((states & state) != 0) add_transfers(copy, state, pieces);
    }
    if (copy.to_device) filled_[op().buffer.index] = {op().range, at_};
  }
  Bytes sum{0};
  for (const Transfer& transfer : copy.transfers) sum += transfer.bytes;
  if (sum != op().bytes) reject(fmt::format("says {} bytes, but copies {}", op().bytes.value, sum.value));
  return copy;
}

/// A part of the states, or of the elements, of packed regions: a transfer for each state and region.
void ProgramCompiler::add_packed(Copy& copy, std::uint8_t states, const StateLayout& layout) const {
  for (const StateBits state : kStateOrder) {
    if ((states & state) == 0) continue;
    for (std::int64_t begin = op().range.begin; begin < op().range.end;) {
      const std::int64_t end = std::min(op().range.end, host_.region_end(begin));
      const auto host = host_.at(state, 0, begin);
      if (!host) reject("the host has no place for what it copies");
      copy.transfers.push_back({{op().buffer, layout.at(state, 0, begin)},
                                *host,
                                bytes_of({end - begin}, bytes_per_element(plan_.precision, state))});
      begin = end;
    }
  }
}

Bytes ProgramCompiler::device_at(StateBits what, const Piece& piece) const {
  if (what == kGrads && !op().buffer.valid()) return gradient_at(program_.grads, piece);
  if (what == kGrads || what == kParams) return {4 * (piece.elements.begin - op().range.begin)};
  const std::optional<StateLayout>& held = layouts_[op().buffer.index];
  return (held ? *held : slot_).at(what, piece.shard, piece.elements.begin);
}

void ProgramCompiler::add_transfers(Copy& copy, StateBits what, const std::vector<Piece>& pieces) const {
  const bool wire = what == kGrads || what == kParams;
  const BufferId buffer = op().buffer.valid() ? op().buffer : program_.grads;
  const std::int64_t size = wire ? 4 : bytes_per_element(plan_.precision, what);
  for (const Piece& piece : pieces) {
    const auto host = host_.at(what == kParams ? kMaster : what, piece.shard, piece.elements.begin);
    if (!host) reject("the host has no place for what it copies");
    copy.transfers.push_back({{buffer, device_at(what, piece)}, *host, bytes_of(piece.elements.numel(), size)});
  }
}

// Adam

Action ProgramCompiler::device_adam() {
  const Precision& precision = plan_.precision;
  owned_range(op().range);
  live(op().buffer, "moments");
  if ((op().states & kGrads) == 0) reject("is an Adam without gradients");
  DeviceAdam adam;
  adam.foreach = op().work == Work::adam_foreach;
  adam.moments = op().buffer;
  const StateLayout layout = layout_of(op().buffer, op().range);
  if (!layout.holds(kMoments, op().range)) reject("its buffer does not hold the moments of its elements");
  StateLayout masters = layout;
  adam.masters = op().buffer;
  if (!masters_apart()) {
    adam.masters = program_.params;
  } else if (!layout.holds(kMaster, op().range)) {
    adam.masters = holder_of(kMaster, op().range);
    masters = layout_of(adam.masters, op().range);
  }
  adam.grads = gradients_for(op().range);
  adam.grad_type = type_of_gradients(adam.grads);
  const bool writes = masters_apart() && (op().states & kParams) != 0;
  if (writes) adam.params = program_.params;
  if (adam.foreach) {
    if (precision.exp_avg != Dtype::fp32 || precision.exp_avg_sq != Dtype::fp32)
      reject("unfused Adam works on fp32 moments only");
    adam.scratch = scratch_for(bytes_of(op().range.numel(), 4));
  }
  const RunSizes size{size_of(precision.exp_avg), size_of(precision.exp_avg_sq), 4, size_of(adam.grad_type),
                      writes ? size_of(precision.params) : 0};
  for (const Piece& piece : owned_.pieces(op().range)) {
    const std::int64_t first = piece.elements.begin;
    const StateRun run{.elements = piece.elements,
                       .exp_avg = layout.at(kExpAvg, piece.shard, first),
                       .exp_avg_sq = layout.at(kExpAvgSq, piece.shard, first),
                       .master = masters_apart() ? masters.at(kMaster, piece.shard, first) : parameter_at(piece),
                       .grad = gradient_at(adam.grads, piece),
                       .param = writes ? parameter_at(piece) : Bytes{0}};
    if (writes && quantized(piece)) reject("writes quantised parameters as if they were plain");
    if (!aligned(run.exp_avg, size.exp_avg) || !aligned(run.exp_avg_sq, size.exp_avg_sq) || !aligned(run.master, 4))
      reject("packed state of mixed types does not start at a multiple of its size", "use slots of even elements");
    append(adam.runs, run, size);
  }
  return adam;
}

Action ProgramCompiler::host_adam() {
  HostAdam adam;
  for (const Piece& piece : owned_.pieces(op().range)) {
    const std::int64_t first = piece.elements.begin;
    const auto master = host_.at(kMaster, piece.shard, first);
    const auto grad = host_.at(kGrads, piece.shard, first);
    if (!master || !grad) reject("gradients do not reach the host, or parameters do not return, for its elements");
    const StateRun run{.elements = piece.elements,
                       .exp_avg = host_.moment(kExpAvg, first),
                       .exp_avg_sq = host_.moment(kExpAvgSq, first),
                       .master = *master,
                       .grad = *grad};
    append(adam.runs, run, {4, 4, 4, 4, 0});
  }
  return adam;
}

// Casts

Action ProgramCompiler::cast() {
  if (!op().buffer.valid() || (op().states & (kGrads | kParams)) == 0) reject("casts nothing that a replay knows");
  live(op().buffer, "a cast");
  owned_range(op().range);
  const Role role = buffer_of(op().buffer).role;
  if (op().states == kGrads && role == Role::grad_copies) return copy_gradients();
  if (role == Role::staging) return cast_staged();
  if (op().states == (kMaster | kParams) && role == Role::state) return cast_masters();
  reject("casts nothing that a replay knows");
}

Action ProgramCompiler::copy_gradients() {
  Cast cast{program_.grads, op().buffer, plan_.precision.grads, Dtype::fp32, {}};
  const ElementRange holds = buffer_of(op().buffer).holds;
  if (op().range.begin < holds.begin || op().range.end > holds.end) reject("its buffer does not hold these copies");
  for (const Piece& piece : owned_.pieces(op().range))
    cast.runs.push_back({piece.elements.numel(), gradient_at(program_.grads, piece), gradient_at(op().buffer, piece)});
  return cast;
}

Action ProgramCompiler::cast_staged() {
  if (op().states != kGrads && op().states != kParams) reject("is a conversion of neither gradients nor parameters");
  room(op().buffer, bytes_of(op().range.numel(), 4));
  const bool params = op().states == kParams;
  Cast cast;
  if (params)
    cast = {op().buffer, program_.params, Dtype::fp32, plan_.precision.params, {}};
  else
    cast = {program_.grads, op().buffer, plan_.precision.grads, Dtype::fp32, {}};
  for (const Piece& piece : owned_.pieces(op().range)) {
    const Bytes staged{4 * (piece.elements.begin - op().range.begin)};
    if (params && quantized(piece)) reject("casts to quantised parameters");
    if (params)
      cast.runs.push_back({piece.elements.numel(), staged, parameter_at(piece)});
    else
      cast.runs.push_back({piece.elements.numel(), gradient_at(program_.grads, piece), staged});
  }
  return cast;
}

Action ProgramCompiler::cast_masters() {
  const StateLayout& layout = layout_of(op().buffer, op().range);
  if (!masters_apart() || !layout.holds(kMaster, op().range)) reject("its buffer does not hold the masters it casts");
  Cast cast{op().buffer, program_.params, plan_.precision.master, plan_.precision.params, {}};
  for (const Piece& piece : owned_.pieces(op().range)) {
    if (quantized(piece)) reject("casts to quantised parameters");
    cast.runs.push_back(
        {piece.elements.numel(), layout.at(kMaster, piece.shard, piece.elements.begin), parameter_at(piece)});
  }
  return cast;
}

// Forward and backward

Action ProgramCompiler::stand() {
  if (op().phase != Phase::forward && op().phase != Phase::backward)
    reject("products of the optimizer (Muon) are not replayed yet", "use Adam");
  Stand stand;
  stand.backward = op().phase == Phase::backward;
  stand.range = op().range;
  stand.duration = op().duration;
  if (stand.range.begin == 0 && stand.range.end == 0) stand.range.end = program_.padded.value;
  if (stand.range.begin < 0 || stand.range.begin >= stand.range.end || stand.range.end > program_.padded.value)
    reject(fmt::format("elements [{}, {}) are not part of the {} padded ones", stand.range.begin, stand.range.end,
                       program_.padded.value));
  live(op().buffer, "activations");
  if (buffer_of(op().buffer).role != Role::other) reject("its activations lie in a buffer of another role");
  stand.activations = op().buffer;
  stand.micro = directions_[stand.backward ? 1 : 0]++;
  return stand;
}

}  // namespace ebb::replay
