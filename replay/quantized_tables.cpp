#include "replay/quantized_tables.hpp"

#include <algorithm>

#include "models/errors.hpp"
#include "replay/kernel_type.hpp"

namespace ebb::replay {
namespace {

const Quantized& quantized_of(const Program& program) {
  EBB_ASSERT(program.quantized.has_value());
  return *program.quantized;
}

kernels::QuantizedMatrix matrix_of(const QuantizedParameter& p, Bytes largest) {
  return {.rows = p.rows,
          .columns = p.columns,
          .largest = largest.value,
          .row = p.row.value,
          .row_scales = p.row_scales.value,
          .column = p.column.value,
          .column_scales = p.column_scales.value};
}

const QuantizedParameter& parameter_of(const Quantized& quantized, const QuantizedRun& run) {
  EBB_ASSERT(run.quantized < quantized.parameters.size());
  return quantized.parameters[run.quantized];
}

/// Elements [begin, end) that two ranges have in common; empty where they have none.
ElementRange common(ElementRange a, ElementRange b) {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

/// A quantised bucket's part of `range`: its parameters' elements, and the gaps between them.
void add_quantized(PaddedValues& values, const Program& program, ElementRange part, std::int64_t begin) {
  std::int64_t done = part.begin;
  const auto gap_until = [&](std::int64_t end) {
    if (end > done) values.gaps.push_back({.offset = 4 * (done - begin), .index = 0, .numel = end - done});
  };
  const std::vector<QuantizedParameter>& all = quantized_of(program).parameters;
  const auto place = [&](const QuantizedParameter& p) { return program.plan->parameters[p.parameter].at.value; };
  auto p = std::partition_point(all.begin(), all.end(),
                                [&](const auto& q) { return place(q) + q.rows * q.columns <= part.begin; });
  for (; p != all.end() && place(*p) < part.end; ++p) {
    const ElementRange own = common(part, {place(*p), place(*p) + p->rows * p->columns});
    gap_until(own.begin);
    values.quantized.push_back({.matrix = matrix_of(*p, Bytes{0}),
                                .first = own.begin - place(*p),
                                .numel = own.numel().value,
                                .values = 4 * (own.begin - begin)});
    done = own.end;
  }
  gap_until(part.end);
}

}  // namespace

kernels::Scaling scaling_of(const Program& program) {
  switch (quantized_of(program).recipe) {
    case Fp8Recipe::tensorwise:
      return kernels::Scaling::tensorwise;
    case Fp8Recipe::blockwise:
      return kernels::Scaling::blockwise;
    case Fp8Recipe::mxfp8:
      return kernels::Scaling::mxfp8;
    case Fp8Recipe::none:
    case Fp8Recipe::delayed:
      break;
  }
  EBB_ASSERT(!"a recipe whose weights are quantised from masters");
  return kernels::Scaling::tensorwise;
}

kernels::QuantizedArrays quantized_arrays(const Program& program, const QuantizedNeeds& needs,
                                          const std::function<void*(BufferId)>& at) {
  const Quantized& quantized = quantized_of(program);
  kernels::QuantizedArrays arrays;
  if (needs.largest != BufferId::none()) arrays.largest = static_cast<float*>(at(needs.largest));
  if (needs.rows || needs.columns) arrays.row_scales = at(quantized.scales);
  if (needs.rows) arrays.rows = at(program.params);
  if (needs.columns) {
    EBB_ASSERT(has_columns(program));
    arrays.columns = at(quantized.columns);
    arrays.column_scales = quantized.recipe == Fp8Recipe::mxfp8 ? arrays.row_scales : arrays.columns;
  }
  return arrays;
}

bool has_columns(const Program& program) { return quantized_of(program).columns != BufferId::none(); }

std::vector<kernels::QuantizedMatrix> quantized_matrices(const Program& program,
                                                         const std::vector<QuantizedRun>& scales) {
  const Quantized& quantized = quantized_of(program);
  std::vector<kernels::QuantizedMatrix> matrices;
  matrices.reserve(scales.size());
  for (const QuantizedRun& run : scales) matrices.push_back(matrix_of(parameter_of(quantized, run), run.largest));
  return matrices;
}

std::vector<kernels::QuantizedPiece> quantized_pieces(const Program& program, const std::vector<QuantizedRun>& runs) {
  const Quantized& quantized = quantized_of(program);
  std::vector<kernels::QuantizedPiece> pieces;
  pieces.reserve(runs.size());
  for (const QuantizedRun& run : runs) {
    pieces.push_back({.matrix = matrix_of(parameter_of(quantized, run), run.largest),
                      .first = run.first,
                      .numel = run.numel.value,
                      .values = run.master.value});
  }
  return pieces;
}

std::vector<kernels::QuantizedMatrix> quantized_matrices(const Program& program, const MakeColumns& action) {
  const Quantized& quantized = quantized_of(program);
  EBB_ASSERT(quantized.recipe != Fp8Recipe::mxfp8);  // its columns are quantised from masters, not copied
  std::vector<kernels::QuantizedMatrix> matrices;
  matrices.reserve(action.quantized.size());
  for (const std::uint32_t index : action.quantized) {
    EBB_ASSERT(index < quantized.parameters.size());
    matrices.push_back(matrix_of(quantized.parameters[index], Bytes{0}));
  }
  return matrices;
}

PaddedValues padded_values(const Program& program, ElementRange padded) {
  const Plan& plan = *program.plan;
  PaddedValues values;
  values.plain_type = kernel_type(plan.precision.params);
  std::int64_t bytes = 0;  // where the bucket begins in the parameter buffer
  for (const PlanBucket& bucket : plan.buckets) {
    const std::int64_t size = bucket.quantized ? 1 : kernels::bytes_of(values.plain_type);
    const ElementRange part = common(padded, {bucket.begin.value, bucket.end.value});
    if (part.numel().value > 0 && bucket.quantized) add_quantized(values, program, part, padded.begin);
    if (part.numel().value > 0 && !bucket.quantized) {
      values.plain.push_back({.source = bytes + size * (part.begin - bucket.begin.value),
                              .destination = 4 * (part.begin - padded.begin),
                              .numel = part.numel().value});
    }
    bytes += size * bucket.numel().value;
  }
  return values;
}

}  // namespace ebb::replay
