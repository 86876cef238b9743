// Ops of a life's parts beside the step: state that comes into being, and state on its way to a checkpoint or out of
// one (program.hpp).
#include <fmt/format.h>

#include <algorithm>

#include "replay/program_compiler.hpp"

namespace ebb::replay {

namespace {

/// In the order in which they lie in a buffer of role checkpoint.
constexpr std::array<StateBits, 4> kCheckpointOrder = {kExpAvg, kExpAvgSq, kMaster, kParams};

/// Appends, or lengthens the last part where it goes on behind it.
void append(std::vector<Zero::Part>& parts, Bytes at, Bytes bytes) {
  if (!parts.empty() && parts.back().at + parts.back().bytes == at)
    parts.back().bytes += bytes;
  else
    parts.push_back({at, bytes});
}

}  // namespace

Action ProgramCompiler::zero_state() {
  live(op().buffer, "what it zeroes");
  if (buffer_of(op().buffer).role == Role::largest)
    return Zero{op().buffer, {{Bytes{0}, buffer_of(op().buffer).bytes}}};
  owned_range(op().range);
  const StateLayout layout = layout_of(op().buffer, op().range);
  const std::uint8_t states = op().states & (masters_apart() ? kAllState : kMoments);
  if (states == 0 || !layout.holds(states, op().range)) reject("its buffer does not hold what it zeroes");
  Zero zero{op().buffer, {}};
  for (const StateBits state : kStateOrder) {
    if ((states & state) == 0) continue;
    for (const Piece& piece : owned_.pieces(op().range))
      append(zero.parts, layout.at(state, piece.shard, piece.elements.begin),
             bytes_of(piece.elements.numel(), bytes_per_element(plan_.precision, state)));
  }
  filled_[op().buffer.index] = {op().range, at_};
  return zero;
}

/// fp32 of the parameters, in the buffer of masters.
Action ProgramCompiler::masters_of_params() {
  owned_range(op().range);
  live(op().buffer, "masters");
  const StateLayout layout = layout_of(op().buffer, op().range);
  if (!masters_apart() || !layout.holds(kMaster, op().range)) reject("its buffer does not hold the masters it makes");
  Cast cast{program_.params, op().buffer, plan_.precision.params, Dtype::fp32, {}};
  for (const Piece& piece : owned_.pieces(op().range)) {
    if (quantized(piece)) reject("makes masters from quantised parameters", "make them from the host's initial values");
    cast.runs.push_back(
        {piece.elements.numel(), parameter_at(piece), layout.at(kMaster, piece.shard, piece.elements.begin)});
  }
  filled_[op().buffer.index] = {op().range, at_};
  return cast;
}

Action ProgramCompiler::masters_on_host() {
  owned_range(op().range);
  if (!masters_apart()) reject("makes masters that are parameters");
  HostMasters masters;
  const std::int64_t behind = op().range.end;
  for (const Piece& piece : owned_.pieces(op().range)) {
    for (std::int64_t begin = piece.elements.begin; begin < piece.elements.end;) {
      std::int64_t end = std::min(piece.elements.end, behind);
      std::optional<Bytes> at;
      if (op().host_buffer.valid()) {
        check_host_buffer();
        at = staged_at(kMaster, begin);
      } else {
        end = std::min(end, host_.region_end(begin));
        at = host_.at(kMaster, piece.shard, begin);
      }
      if (!at) reject("the host has no place for the masters it makes");
      masters.runs.push_back({{piece.at + begin - piece.elements.begin}, {end - begin}, *at});
      begin = end;
    }
  }
  return masters;
}

// Checkpoints

Dtype ProgramCompiler::type_of(StateBits state) const {
  if (state == kParams) return plan_.precision.params;
  if (state == kMaster || host_.stepped()) return Dtype::fp32;
  return state == kExpAvg ? plan_.precision.exp_avg : plan_.precision.exp_avg_sq;
}

void ProgramCompiler::check_host_buffer() const {
  const BufferId id = op().host_buffer;
  if (id.index >= plan_.buffers.size() || buffer_of(id).role != Role::checkpoint)
    reject("its host buffer is none of role checkpoint");
  if (!alive_[id.index]) reject(fmt::format("buffer \"{}\" is not alive (host buffer)", buffer_of(id).name));
  std::int64_t element = 0;
  for (const StateBits state : kCheckpointOrder)
    if ((op().states & state) != 0) element += size_of(type_of(state));
  room(id, bytes_of(op().range.numel(), element));
}

Bytes ProgramCompiler::staged_at(StateBits what, std::int64_t element) const {
  Bytes at = staged_[op().host_buffer.index];
  for (const StateBits state : kCheckpointOrder) {
    if (state == what) break;
    if ((op().states & state) != 0) at += bytes_of(op().range.numel(), size_of(type_of(state)));
  }
  return at + bytes_of({element - op().range.begin}, size_of(type_of(what)));
}

/// The op's states of its range, where they lie in host memory.
std::vector<CheckpointPiece> ProgramCompiler::host_pieces() const {
  std::vector<CheckpointPiece> pieces;
  const auto stepped = host_.stepped();
  for (const StateBits state : kCheckpointOrder) {
    if ((op().states & state) == 0) continue;
    for (const Piece& piece : owned_.pieces(op().range)) {
      for (std::int64_t begin = piece.elements.begin; begin < piece.elements.end;) {
        CheckpointPiece part{.state = state,
                             .shard = piece.shard,
                             .first = {begin - owned_.of_shard(piece.shard).begin},
                             .type = type_of(state)};
        std::int64_t end = piece.elements.end;
        if (op().host_buffer.valid()) {
          part.host_at = staged_at(state, begin);
        } else if (stepped && (state & kMoments) != 0) {
          if (begin < stepped->begin || end > stepped->end) reject("moments that are not in the host's memory");
          part.host = Memory::pageable;
          part.host_at = host_.moment(state, begin);
        } else {
          end = std::min(end, host_.region_end(begin));
          const auto at = state == kParams ? std::nullopt : host_.at(state, piece.shard, begin);
          if (!at) reject("the host has no place for what it stores or fetches");
          part.host_at = *at;
        }
        part.numel = {end - begin};
        pieces.push_back(part);
        begin = end;
      }
    }
  }
  return pieces;
}

Action ProgramCompiler::store_or_fetch() {
  owned_range(op().range);
  if (op().host_buffer.valid()) check_host_buffer();
  if ((op().states & (kAllState | kParams)) == 0) reject("names no state");
  std::vector<CheckpointPiece> pieces = host_pieces();
  Bytes sum{0};
  for (const CheckpointPiece& piece : pieces) sum += bytes_of(piece.numel, size_of(piece.type));
  if (sum != op().bytes) reject(fmt::format("says {} bytes, but moves {}", op().bytes.value, sum.value));
  if (op().work == Work::store) return Store{std::move(pieces)};
  return Fetch{std::move(pieces)};
}

/// Between a device buffer and a buffer of role checkpoint.
Action ProgramCompiler::copy_staged() {
  owned_range(op().range);
  check_host_buffer();
  Copy copy;
  copy.to_device = op().kind == OpKind::copy_h2d;
  live(op().buffer, "what it copies");
  const Role role = buffer_of(op().buffer).role;
  const std::int64_t param = size_of(plan_.precision.params);
  if (role == Role::staging) room(op().buffer, bytes_of(op().range.numel(), param));
  for (const StateBits state : kCheckpointOrder) {
    if ((op().states & state) == 0) continue;
    if (state == kParams ? role != Role::staging && role != Role::params : role != Role::state)
      reject("its buffer is not of the kind that it copies");
    for (const Piece& piece : owned_.pieces(op().range)) {
      const std::int64_t begin = piece.elements.begin;
      Bytes at{param * (begin - op().range.begin)};
      if (state != kParams) {
        const StateLayout& layout = layout_of(op().buffer, op().range);
        if (!layout.holds(state, op().range)) reject("its buffer does not hold what it copies");
        at = layout.at(state, piece.shard, begin);
      } else if (role == Role::params) {
        if (quantized(piece)) reject("copies quantised parameters as they are", "dequantise them first");
        at = parameter_at(piece);
      }
      copy.transfers.push_back(
          {{op().buffer, at}, staged_at(state, begin), bytes_of(piece.elements.numel(), size_of(type_of(state)))});
    }
  }
  if (copy.to_device && role == Role::state) filled_[op().buffer.index] = {op().range, at_};
  return copy;
}

/// A save that stores the host's own copy of state which is on the device would write what is out of date.
void ProgramCompiler::check_stores() const {
  struct Out {
    std::uint8_t states;
    ElementRange range;
  };
  std::vector<Out> out;  // what the plan has copied into the host's own places
  for (std::uint32_t i = 0; i < plan_.ops.size(); ++i) {
    const Op& op = plan_.ops[i];
    if (op.host_buffer.valid()) continue;
    if (op.kind == OpKind::copy_d2h) out.push_back({op.states, op.range});
    if (op.kind != OpKind::host_work || op.work != Work::store) continue;
    for (const StatePlace& place : program_.before) {
      if (!place.on_device || (op.states & place.state) == 0) continue;
      const ElementRange stale{std::max(place.elements.begin, op.range.begin),
                               std::min(place.elements.end, op.range.end)};
      if (stale.begin >= stale.end) continue;
      const bool copied = std::any_of(out.begin(), out.end(), [&](const Out& copy) {
        return (copy.states & place.state) != 0 && copy.range.begin <= stale.begin && copy.range.end >= stale.end;
      });
      if (!copied)
        reject_plan(fmt::format("op {} (store) writes the host's copy of state that is in buffer \"{}\" on the device",
                                i, buffer_of(place.device.buffer).name));
    }
  }
}

}  // namespace ebb::replay
