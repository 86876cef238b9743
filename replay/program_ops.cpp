// Which action an op is, and those that are about all elements: norm, clip, forward and backward. The others have files
// of their own: program_copies.cpp, program_adam.cpp, program_life.cpp, program_quantized.cpp, program_collectives.cpp.
#include <fmt/format.h>

#include "replay/program_compiler.hpp"

namespace ebb::replay {

namespace {

constexpr Bytes kNormBytes{NormWords::kNonFinite + 4};

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

// Forward and backward

Action ProgramCompiler::stand() {
  if (op().phase != Phase::forward && op().phase != Phase::backward)
    reject("products of the optimizer (Muon) are not replayed yet", "use Adam");
  Stand stand;
  stand.backward = op().phase == Phase::backward;
  stand.range = op().range;
  stand.duration = op().duration;
  const bool all = stand.range == ElementRange{};
  const bool filler = all && op().states == 0;
  if (all && !filler) stand.range.end = program_.padded.value;
  if (!filler &&
      (stand.range.begin < 0 || stand.range.begin >= stand.range.end || stand.range.end > program_.padded.value))
    reject(fmt::format("elements [{}, {}) are not part of the {} padded ones", stand.range.begin, stand.range.end,
                       program_.padded.value));
  live(op().buffer, "activations");
  if (buffer_of(op().buffer).role != Role::other) reject("its activations lie in a buffer of another role");
  stand.activations = op().buffer;
  if (!filler) stand.micro = directions_[stand.backward ? 1 : 0]++;
  return stand;
}

}  // namespace ebb::replay
