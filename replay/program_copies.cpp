// Copies of state, gradients and parameters between the device and the host's own places: their transfers
// (program.hpp). Not here: those of checkpoints' buffers (program_life.cpp).
#include <fmt/format.h>

#include <algorithm>

#include "replay/program_compiler.hpp"

namespace ebb::replay {

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

}  // namespace ebb::replay
