// Quantising: 2^30 elements in matrices of a transformer, and their pieces as a rank of eight owns them.
#include <string>
#include <vector>

#include "kernels/elementwise.hpp"
#include "kernels/quantize.hpp"
#include "tests/kernels/gpu/bench_cases.hpp"

namespace ebb::kernels::gpu {
namespace {

struct Quantizing {
  std::string name;
  std::vector<QuantizedMatrix> matrices;
  std::vector<QuantizedPiece> pieces;  // `values` in elements
  std::int64_t elements = 0, all = 0, largest = 0, row_scales = 0, column_scales = 0;
};

/// `count` matrices one after another; of each the elements [part, part + 1) / parts are owned, packed.
Quantizing matrices_of(Scaling scaling, std::int64_t count, std::int64_t rows, std::int64_t columns,
                       std::int64_t parts) {
  Quantizing q;
  const std::int64_t numel = rows * columns;
  for (std::int64_t i = 0; i < count; ++i) {
    const QuantizedMatrix m{.rows = rows,
                            .columns = columns,
                            .largest = 4 * q.largest,
                            .row = q.all,
                            .row_scales = q.row_scales,
                            .column = q.all,
                            .column_scales = q.column_scales};
    q.matrices.push_back(m);
    const std::int64_t own = (numel / parts + 3) / 4 * 4, first = parts == 1 ? 0 : i % parts * (numel / parts) / 4 * 4;
    q.pieces.push_back({.matrix = m, .first = first, .numel = std::min(own, numel - first), .values = q.elements});
    q.elements += own;
    q.all += numel;
    q.largest += largest_count(scaling, rows, columns);
    q.row_scales += row_scale_bytes(scaling, rows, columns);
    q.column_scales += column_scale_bytes(scaling, rows, columns);
  }
  return q;
}

std::vector<QuantizedPiece> pieces_of(const Quantizing& q, std::int64_t bytes) {
  std::vector<QuantizedPiece> pieces = q.pieces;
  for (QuantizedPiece& piece : pieces) piece.values *= bytes;
  return pieces;
}

template <class Launch>
void add(Report& report, const Quantizing& q, const std::string& name, std::int64_t elements, std::int64_t bytes,
         Launch launch) {
  const double seconds = median_seconds([&] { check(launch(), name.c_str()); }, kRepeats, kCalls);
  report.add({.name = name + q.name,
              .elements = elements,
              .runs = static_cast<std::int64_t>(q.pieces.size()),
              .bytes = bytes,
              .seconds = seconds});
}

void bench_scaling(Report& report, const Memory& m, Scaling scaling, const Quantizing& q) {
  // Masters: 4 bytes an element; largest values, scales and copies in arrays of their own.
  const QuantizedArrays arrays{.largest = m.grad.as<float>(),
                               .rows = m.exp_avg.get(),
                               .row_scales = m.scratch.get(),
                               .columns = m.exp_avg.get() + 2 * kLarge,
                               .column_scales = m.scratch.get() + kLarge};
  check(cudaMemset(arrays.largest, 0, static_cast<std::size_t>(4 * q.largest)), "cudaMemset");
  const auto pieces = pieces_of(q, 4);
  const bool mxfp8 = scaling == Scaling::mxfp8;
  // mxfp8: largest values are 1/16 of the elements, written where they grow; they count as read and written once.
  const std::int64_t maxima = mxfp8 ? q.elements / 16 * 8 : 0;
  add(report, q, "find largest, ", q.elements, 4 * q.elements + maxima,
      [&] { return launch_find_largest(scaling, m.master.get(), arrays, pieces, nullptr); });
  add(report, q, "scales, ", q.all, 4 * q.largest + q.row_scales + q.column_scales,
      [&] { return launch_scales(scaling, arrays, q.matrices, nullptr); });
  add(report, q, "quantize, ", q.elements, (mxfp8 ? 6 : 5) * q.elements,
      [&] { return launch_quantize(scaling, m.master.get(), arrays, pieces, nullptr); });
  for (const Type type : {Type::bf16, Type::fp32}) {
    const auto values = pieces_of(q, bytes_of(type));
    for (const bool columns : {false, true}) {
      add(report, q,
          std::string("dequantize ") + (columns ? "columns to " : "rows to ") +
              (type == Type::bf16 ? "bf16, " : "fp32, "),
          q.elements, (1 + bytes_of(type)) * q.elements, [&] {
            return launch_dequantize(scaling, arrays,
                                     {.values = m.exp_avg_sq.get(), .type = type, .from_columns = columns}, values,
                                     nullptr);
          });
    }
  }
  if (mxfp8) return;
  add(report, q, "make columns, ", q.all, 2 * q.all,
      [&] { return launch_make_columns(scaling, arrays, q.matrices, nullptr); });
}

}  // namespace

void bench_quantize(Report& report, const Memory& m) {
  fill_state(m, Type::fp32);
  const struct {
    const char* name;
    Scaling scaling;
  } recipes[] = {{"tensorwise", Scaling::tensorwise}, {"blockwise", Scaling::blockwise}, {"mxfp8", Scaling::mxfp8}};
  for (const auto& recipe : recipes) {
    Quantizing q = matrices_of(recipe.scaling, 64, 4096, 4096, 1);
    q.name = std::string(recipe.name) + " 64 x [4096, 4096]";
    bench_scaling(report, m, recipe.scaling, q);
    q = matrices_of(recipe.scaling, 128, 4096, 14336 / 8, 8);
    q.name = std::string(recipe.name) + " eighths of 128 x [4096, 1792]";
    bench_scaling(report, m, recipe.scaling, q);
    bench_copy(report, m);
  }
}

}  // namespace ebb::kernels::gpu
