// Adam on the device and on the host, and the casts around it: their runs (program.hpp).
#include "replay/program_compiler.hpp"

namespace ebb::replay {

namespace {

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

}  // namespace ebb::replay
