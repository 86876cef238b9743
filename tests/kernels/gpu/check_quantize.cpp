// Largest values, scales, bytes, values and transposed copies of many matrices at once against the references: odd and
// large shapes, pieces that begin and end anywhere, every kind of masters, all alignments.
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/quantize.hpp"
#include "tests/kernels/gpu/checks.hpp"
#include "tests/kernels/gpu/device.hpp"
#include "tests/kernels/quantize_cases.hpp"

namespace ebb::kernels::gpu {
namespace {

using test::Kind;

struct Shape {
  std::int64_t rows, columns;
};

/// How arrays and pieces lie: on vectors wherever shapes allow, or anywhere.
enum class Lying { aligned, anywhere };

/// Matrices side by side in common arrays, and pieces of them.
struct Layout {
  std::vector<QuantizedMatrix> matrices;
  std::vector<QuantizedPiece> pieces;
  std::int64_t values = 0;  // elements of the pieces, with gaps
  std::int64_t largest = 0, bytes = 0, row_scales = 0, column_scales = 0;
};

void add_pieces(Layout& layout, const QuantizedMatrix& m, int cuts, Lying lying, std::mt19937& engine) {
  const auto at = test::borders(m.rows * m.columns, cuts, engine);
  for (std::size_t i = 0; i + 1 < at.size(); ++i) {
    layout.values +=
        lying == Lying::aligned ? (at[i] - layout.values % 4 + 8) % 4 : static_cast<std::int64_t>(engine() % 4);
    if (engine() % 8 != 0) {  // the others are another rank's
      layout.pieces.push_back({.matrix = m, .first = at[i], .numel = at[i + 1] - at[i], .values = layout.values});
      layout.values += at[i + 1] - at[i];
    }
  }
}

Layout lay_out(Scaling scaling, const std::vector<Shape>& shapes, int cuts, Lying lying, std::mt19937& engine) {
  Layout layout;
  const auto gap = [&] { return lying == Lying::aligned ? 16 : static_cast<std::int64_t>(1 + engine() % 7); };
  const auto next = [&](std::int64_t& at, std::int64_t bytes) {
    at = lying == Lying::aligned ? (at + gap() + 15) / 16 * 16 : at + gap();
    const std::int64_t begin = at;
    at += bytes;
    return begin;
  };
  for (const Shape s : shapes) {
    const std::int64_t numel = s.rows * s.columns;
    QuantizedMatrix m{.rows = s.rows, .columns = s.columns};
    m.largest = 4 * next(layout.largest, largest_count(scaling, s.rows, s.columns));
    m.row = m.column = next(layout.bytes, numel);
    // fp32 scales must be at multiples of four bytes.
    const std::int64_t size = scaling == Scaling::mxfp8 ? 1 : 4;
    m.row_scales = size * next(layout.row_scales, row_scale_bytes(scaling, s.rows, s.columns) / size);
    m.column_scales = size * next(layout.column_scales, column_scale_bytes(scaling, s.rows, s.columns) / size);
    layout.matrices.push_back(m);
    add_pieces(layout, m, cuts, lying, engine);
  }
  std::shuffle(layout.pieces.begin(), layout.pieces.end(), engine);
  return layout;
}

std::vector<QuantizedPiece> with_values(std::vector<QuantizedPiece> pieces, std::int64_t bytes) {
  for (QuantizedPiece& piece : pieces) piece.values *= bytes;
  return pieces;
}

std::vector<char> poison(std::int64_t bytes) { return std::vector<char>(static_cast<std::size_t>(bytes + 64), '\x5a'); }

std::vector<char> masters_of(std::int64_t numel, Kind kind, std::mt19937& engine) {
  const std::vector<float> x = test::draw_masters(numel + 16, kind, engine);
  std::vector<char> bytes(4 * x.size());
  std::memcpy(bytes.data(), x.data(), bytes.size());
  return bytes;
}

/// All arrays, twice.
struct Twins {
  Twin masters, largest, rows, columns, row_scales, column_scales;

  Twins(const Layout& l, Kind kind, std::mt19937& engine)
      : masters(masters_of(l.values, kind, engine)),
        largest(std::vector<char>(static_cast<std::size_t>(4 * l.largest + 64))),
        rows(poison(l.bytes)),
        columns(poison(l.bytes)),
        row_scales(poison(4 * l.row_scales)),
        column_scales(poison(4 * l.column_scales)) {}

  QuantizedArrays host() {
    return {.largest = reinterpret_cast<float*>(largest.host()),
            .rows = rows.host(),
            .row_scales = row_scales.host(),
            .columns = columns.host(),
            .column_scales = column_scales.host()};
  }
  QuantizedArrays device() {
    return {.largest = reinterpret_cast<float*>(largest.device()),
            .rows = rows.device(),
            .row_scales = row_scales.device(),
            .columns = columns.device(),
            .column_scales = column_scales.device()};
  }
};

bool same_values(Scaling scaling, Twins& t, const Layout& layout) {
  bool same = true;
  for (const Type type : {Type::bf16, Type::fp32}) {
    for (const bool from_columns : {false, true}) {
      Twin values(poison(layout.values * bytes_of(type)));
      const auto pieces = with_values(layout.pieces, bytes_of(type));
      DequantizeTarget host{.values = values.host(), .type = type, .from_columns = from_columns}, device = host;
      device.values = values.device();
      dequantize_ref(scaling, t.host(), host, pieces);
      check(launch_dequantize(scaling, t.device(), device, pieces, nullptr), "dequantize");
      finish("dequantize");
      same &= values.same(from_columns ? "values of columns" : "values");
    }
  }
  return same;
}

bool same_case(Scaling scaling, const Layout& layout, Kind kind, std::mt19937& engine) {
  Twins t(layout, kind, engine);
  const auto pieces = with_values(layout.pieces, 4);
  find_largest_ref(scaling, t.masters.host(), t.host(), pieces);
  check(launch_find_largest(scaling, t.masters.device(), t.device(), pieces, nullptr), "find_largest");
  finish("find_largest");
  bool same = t.largest.same("largest values");
  scales_ref(scaling, t.host(), layout.matrices);
  check(launch_scales(scaling, t.device(), layout.matrices, nullptr), "scales");
  finish("scales");
  same &= t.row_scales.same("row-wise scales") & t.column_scales.same("column-wise scales");
  quantize_ref(scaling, t.masters.host(), t.host(), pieces);
  check(launch_quantize(scaling, t.masters.device(), t.device(), pieces, nullptr), "quantize");
  finish("quantize");
  same &= t.rows.same("row-wise bytes") & t.columns.same("column-wise bytes");
  if (scaling != Scaling::mxfp8) {
    make_columns_ref(scaling, t.host(), layout.matrices);
    check(launch_make_columns(scaling, t.device(), layout.matrices, nullptr), "make_columns");
    finish("make_columns");
    same &= t.columns.same("transposed bytes") & t.column_scales.same("transposed scales");
  }
  same &= t.masters.same("masters") & same_values(scaling, t, layout);
  if (!same) std::printf("  scaling %d, masters %d\n", static_cast<int>(scaling), static_cast<int>(kind));
  return same;
}

}  // namespace

bool check_quantize() {
  std::mt19937 engine(9);
  std::vector<Shape> small;
  for (std::int64_t n = 1; n <= 300; n += 1 + n / 8) small.push_back({n % 3 == 0 ? 1 : n % 37 + 1, n});
  std::vector<Shape> many(700, {5, 24});  // more matrices than a table holds
  const struct {
    std::vector<Shape> shapes;
    int cuts;
  } cases[] = {{{{1, 1}}, 0},
               {{{1, 300}, {300, 1}, {127, 129}, {129, 127}}, 3},
               {{{128, 128}, {256, 512}, {384, 640}}, 0},
               {{{512, 768}, {131, 260}}, 5},
               {{{3, 70'000}, {2'000, 36}}, 7},
               {{{37, 41}}, 1'500},  // pieces of one element
               {small, 2},
               {many, 1}};
  bool same = true;
  int count = 0;
  for (const auto& c : cases) {
    for (const Scaling scaling : test::kScalings) {
      for (const Lying lying : {Lying::aligned, Lying::anywhere}) {
        const Layout layout = lay_out(scaling, c.shapes, c.cuts, lying, engine);
        for (const Kind kind : test::kKinds) {
          same &= same_case(scaling, layout, kind, engine);
          ++count;
        }
      }
    }
  }
  std::printf("%-12s %5d cases: %s\n", "quantize", count, same ? "same bits" : "DIFFERENT");
  return same;
}

// Every length 0 to 300 of a piece that begins or ends around the border of a tile: 128 rows of 132 columns.
bool check_quantize_tails() {
  std::mt19937 engine(10);
  constexpr std::int64_t kRows = 160, kColumns = 132;
  bool same = true;
  int count = 0;
  for (const Scaling scaling : test::kScalings) {
    for (std::int64_t n = 0; n <= 300; ++n) {
      Layout layout = lay_out(scaling, {{kRows, kColumns}}, 0, Lying::aligned, engine);
      const std::int64_t border = (n % 2 == 0 ? 128 : 32) * kColumns - 150;
      layout.pieces = {{.matrix = layout.matrices[0], .first = border, .numel = n, .values = border % 4},
                       {.matrix = layout.matrices[0], .first = border + n, .numel = 1, .values = 1000}};
      layout.values = 1008;
      same &= same_case(scaling, layout, Kind::normal, engine);
      ++count;
    }
  }
  std::printf("%-12s %5d cases: %s\n", "tails", count, same ? "same bits" : "DIFFERENT");
  return same;
}

}  // namespace ebb::kernels::gpu
