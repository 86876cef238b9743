// Quantised parameters: where their rows, columns and scales lie, and the runs of the ops that make them (program.hpp).
#include <fmt/format.h>

#include <algorithm>

#include "replay/program_compiler.hpp"

namespace ebb::replay {

namespace {

constexpr std::int64_t kAlignment = 16;  // of a tensor in a buffer of scales or columns

/// Bytes of one parameter's tensors. Source of the shapes: planner/weight_bytes.hpp, as QuantizedParameter says them.
struct Sizes {
  std::int64_t row_scales = 0;
  std::int64_t column_scales = 0;
  std::int64_t largest = 0;  // fp32 numbers
};

Sizes sizes_of(Fp8Recipe recipe, std::int64_t rows, std::int64_t columns) {
  const auto tiles = [](std::int64_t a, std::int64_t b) { return ceil_div(a, 128) * round_up(ceil_div(b, 128), 4); };
  switch (recipe) {
    case Fp8Recipe::blockwise:
      return {4 * tiles(rows, columns), 4 * tiles(columns, rows), tiles(rows, columns)};
    case Fp8Recipe::mxfp8: {
      const std::int64_t row = round_up(rows, 128) * round_up(ceil_div(columns, 32), 4);
      const std::int64_t column = round_up(ceil_div(rows, 32), 4) * round_up(columns, 128);
      return {row, column, rows * ceil_div(columns, 32) + ceil_div(rows, 32) * columns};
    }
    default:
      return {4, 0, 1};
  }
}

}  // namespace

void ProgramCompiler::find_quantized() {
  if (!parameters_.any_quantized()) return;
  const auto one = [&](Role role) {
    BufferId found;
    for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b) {
      if (plan_.buffers[b].role != role) continue;
      if (found.valid()) reject_plan(fmt::format("more than one buffer of role {}", name_of(role)));
      if (plan_.buffers[b].memory != Memory::device)
        reject_plan(fmt::format("buffer {} (\"{}\") is not on the device", b, plan_.buffers[b].name));
      found = {b};
    }
    return found;
  };
  const Fp8Recipe recipe = plan_.precision.fp8;
  if (!plan_.precision.fp8_param_gather) reject_plan("quantised buckets, but parameters are not gathered so");
  Quantized all{.recipe = recipe, .scales = one(Role::scales), .columns = one(Role::columns), .parameters = {}};
  if (!all.scales.valid()) reject_plan("quantised buckets, but no buffer of role scales");
  std::int64_t scales = 0, columns = 0;
  for (const PlanBucket& bucket : plan_.buckets)  // mxfp8: column-wise data is gathered, so it lies as the rows do
    if (recipe == Fp8Recipe::mxfp8 && bucket.quantized) columns += bucket.numel().value;
  for (std::uint32_t p = 0; p < plan_.parameters.size(); ++p) {
    const PlanParameter& parameter = plan_.parameters[p];
    if (!parameter.quantized) continue;
    if (parameter.shape.empty() || parameter.shape.front() <= 0 || parameter.numel().value <= 0 ||
        parameter.at.value < 0 || parameter.at + parameter.numel() > program_.padded ||
        !parameters_.quantized(parameter.at.value))
      reject_plan(fmt::format("parameter \"{}\" lies in no quantised bucket", parameter.name));
    QuantizedParameter q{.parameter = p, .rows = parameter.shape.front(), .columns = 0};
    q.columns = parameter.numel().value / q.rows;
    const Sizes size = sizes_of(recipe, q.rows, q.columns);
    q.largest = size.largest;
    q.row = parameters_.at(parameter.at.value);
    q.row_scales = {scales};
    scales += size.row_scales;
    if (recipe == Fp8Recipe::mxfp8) {
      std::int64_t behind = 0;
      for (const PlanBucket& bucket : plan_.buckets) {
        if (!bucket.quantized) continue;
        if (parameter.at < bucket.end) {
          q.column = {behind + (parameter.at - bucket.begin).value};
          break;
        }
        behind += bucket.numel().value;
      }
      q.column_scales = {scales};
      scales += size.column_scales;
    } else {
      q.column = {columns};
      q.column_scales = {recipe == Fp8Recipe::blockwise ? round_up(columns + parameter.numel().value, kAlignment)
                                                        : q.row_scales.value};
      columns = round_up((recipe == Fp8Recipe::blockwise ? q.column_scales.value + size.column_scales
                                                         : columns + parameter.numel().value),
                         kAlignment);
    }
    all.parameters.push_back(q);
  }
  const auto fits = [&](BufferId id, std::int64_t needed) {
    if (id.valid() && buffer_of(id).bytes.value < needed)
      reject_plan(fmt::format("buffer \"{}\" has {} bytes, its tensors need {}", buffer_of(id).name,
                              buffer_of(id).bytes.value, needed));
  };
  fits(all.scales, scales);
  fits(all.columns, columns);
  program_.quantized = std::move(all);
}

/// Byte of the first largest value of Plan::parameters[parameter].
Bytes ProgramCompiler::largest_at(BufferId largest, std::uint32_t parameter) const {
  std::int64_t at = 0;
  const Buffer& buffer = buffer_of(largest);
  for (const std::uint32_t other : buffer.parameters) {
    const auto& all = program_.quantized->parameters;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const QuantizedParameter& q) { return q.parameter == other; });
    if (found == all.end()) reject(fmt::format("buffer \"{}\" is of a parameter that is not quantised", buffer.name));
    if (other == parameter) {
      if (4 * (at + found->largest) > buffer.bytes.value)
        reject(
            fmt::format("buffer \"{}\" has {} bytes, its largest values need more", buffer.name, buffer.bytes.value));
      return {4 * at};
    }
    at += found->largest;
  }
  reject(fmt::format("buffer \"{}\" has no largest values of parameter {}", buffer.name, parameter));
}

/// The live buffer of role largest with the parameters of the owned elements.
BufferId ProgramCompiler::live_largest(ElementRange range) const {
  const std::uint32_t parameter = plan_.shards[owned_.shard_of(range.begin)].parameter;
  for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b) {
    const Buffer& buffer = plan_.buffers[b];
    if (!alive_[b] || buffer.role != Role::largest) continue;
    if (std::find(buffer.parameters.begin(), buffer.parameters.end(), parameter) != buffer.parameters.end()) return {b};
  }
  reject("no live buffer of role largest has its parameters");
}

Bytes ProgramCompiler::master_at(BufferId masters, const Piece& piece) {
  const StateLayout& layout = layout_of(masters, op().range);
  if (!layout.holds(kMaster, op().range)) reject("its buffer does not hold the masters of its elements");
  return layout.at(kMaster, piece.shard, piece.elements.begin);
}

std::vector<QuantizedRun> ProgramCompiler::quantized_runs(ElementRange range, BufferId masters, BufferId largest) {
  std::vector<QuantizedRun> runs;
  if (range.numel().value == 0) return runs;
  owned_range(range);
  const auto& all = program_.quantized->parameters;
  for (const Piece& piece : owned_.pieces(range)) {
    if (!quantized(piece)) continue;
    const PlanShard& shard = plan_.shards[piece.shard];
    QuantizedRun run{.first = shard.offset.value + piece.elements.begin - owned_.of_shard(piece.shard).begin,
                     .numel = piece.elements.numel()};
    while (run.quantized < all.size() && all[run.quantized].parameter != shard.parameter) ++run.quantized;
    if (run.quantized == all.size()) reject(fmt::format("shard \"{}\" is of no quantised parameter", shard.name));
    const QuantizedParameter& q = all[run.quantized];
    if (run.first < 0 || run.first + run.numel.value > q.rows * q.columns)
      reject(fmt::format("shard \"{}\" is not inside its parameter", shard.name));
    if (masters.valid()) run.master = master_at(masters, piece);
    if (largest.valid()) run.largest = largest_at(largest, shard.parameter);
    runs.push_back(run);
  }
  return runs;
}

Action ProgramCompiler::find_largest() {
  if (!program_.quantized) reject("there are no quantised parameters");
  live(op().buffer, "masters or their largest values");
  owned_range(op().range);
  FindLargest find;
  const bool names_largest = buffer_of(op().buffer).role == Role::largest;
  find.largest = names_largest ? op().buffer : live_largest(op().range);
  find.masters = names_largest ? holder_of(kMaster, op().range) : op().buffer;
  find.runs = quantized_runs(op().range, find.masters, find.largest);
  return find;
}

Action ProgramCompiler::quantize() {
  if (!program_.quantized) reject("there are no quantised parameters");
  live(op().buffer, "masters or their largest values");
  Quantize quantize;
  const bool names_largest = buffer_of(op().buffer).role == Role::largest;
  const bool owns = op().range.numel().value > 0;
  if (!names_largest && !owns) reject("names neither largest values nor elements");
  quantize.largest = names_largest ? op().buffer : live_largest(op().range);
  if (owns) quantize.masters = names_largest ? holder_of(kMaster, op().range) : op().buffer;
  if (program_.quantized->recipe == Fp8Recipe::mxfp8 && program_.quantized->columns.valid())
    live(program_.quantized->columns, "column-wise copies");
  live(program_.quantized->scales, "scales");
  const auto& all = program_.quantized->parameters;
  for (const std::uint32_t parameter : buffer_of(quantize.largest).parameters) {
    QuantizedRun run{.largest = largest_at(quantize.largest, parameter)};
    while (all[run.quantized].parameter != parameter) ++run.quantized;  // largest_at() has found it
    quantize.scales.push_back(run);
  }
  quantize.runs = quantized_runs(op().range, quantize.masters, quantize.largest);
  return quantize;
}

Action ProgramCompiler::dequantize() {
  if (!program_.quantized) reject("there are no quantised parameters");
  live(op().buffer, "staging");
  if (buffer_of(op().buffer).role != Role::staging) reject("its buffer is no staging buffer");
  owned_range(op().range);
  const std::int64_t size = size_of(plan_.precision.params);
  room(op().buffer, bytes_of(op().range.numel(), size));
  Dequantize dequantize{op().buffer, quantized_runs(op().range, BufferId::none(), BufferId::none())};
  std::size_t next = 0;
  for (const Piece& piece : owned_.pieces(op().range)) {
    if (!quantized(piece)) reject("is of parameters that are not quantised");
    dequantize.runs[next++].master = {size * (piece.elements.begin - op().range.begin)};
  }
  return dequantize;
}

/// Of the parameters that begin in its padded elements; without a range, of all.
Action ProgramCompiler::make_columns() {
  if (!program_.quantized || !program_.quantized->columns.valid()) reject("there are no column-wise copies");
  live(program_.quantized->columns, "column-wise copies");
  live(program_.quantized->scales, "scales");
  MakeColumns make;
  for (std::uint32_t q = 0; q < program_.quantized->parameters.size(); ++q) {
    const Numel at = plan_.parameters[program_.quantized->parameters[q].parameter].at;
    if (op().range.end == 0 || (at.value >= op().range.begin && at.value < op().range.end)) make.quantized.push_back(q);
  }
  return make;
}

}  // namespace ebb::replay
