// Matrices for the tests of quantising: masters of many kinds, all arrays of one matrix, and cuts into pieces. Beside
// them what the tests compare with: E4M3 by a table of its values, and rounding to bf16 by arithmetic.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "kernels/quantize.hpp"

namespace ebb::kernels::test {

inline constexpr Scaling kScalings[] = {Scaling::tensorwise, Scaling::blockwise, Scaling::mxfp8};

/// How masters are drawn.
enum class Kind { normal, wide, zeros, denormal, huge, special };
inline constexpr Kind kKinds[] = {Kind::normal, Kind::wide, Kind::zeros, Kind::denormal, Kind::huge, Kind::special};

inline float draw(Kind kind, std::mt19937& engine) {
  std::normal_distribution<float> normal;
  const float x = normal(engine);
  switch (kind) {
    case Kind::normal:
      return 0.02F * x;
    case Kind::wide:
      return std::ldexp(x, static_cast<int>(engine() % 200) - 100);
    case Kind::zeros:
      return engine() % 2 == 0 ? 0.0F : -0.0F;
    case Kind::denormal:
      return std::bit_cast<float>(static_cast<std::uint32_t>(engine() % 0x02000000) |
                                  (engine() % 2 == 0 ? 0 : 0x80000000U));
    case Kind::huge:
      return std::ldexp(x, 126);
    case Kind::special: {
      constexpr std::uint32_t kSpecials[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xffc01234, 0x7f800001, 0x00000001,
                                             0x80000000, 0x007fffff, 0x7f7fffff, 0x3f808000, 0x00400000, 0x00800000};
      return engine() % 4000 == 0 ? std::bit_cast<float>(kSpecials[engine() % std::size(kSpecials)]) : 0.02F * x;
    }
  }
  return 0;
}

inline std::vector<float> draw_masters(std::int64_t numel, Kind kind, std::mt19937& engine) {
  std::vector<float> masters(static_cast<std::size_t>(numel));
  for (float& x : masters) x = draw(kind, engine);
  return masters;
}

/// One matrix and all its arrays, bytes poisoned, largest values 0. `gap` bytes lie before each byte array, so that
/// nothing is aligned.
struct Weight {
  Scaling scaling = Scaling::tensorwise;
  QuantizedMatrix matrix;
  std::vector<float> largest;
  std::vector<std::uint8_t> rows, columns, row_scales, column_scales;

  Weight(Scaling how, std::int64_t r, std::int64_t c, std::int64_t gap = 0) : scaling(how) {
    matrix = {.rows = r, .columns = c, .row = gap, .column = gap};
    largest.assign(static_cast<std::size_t>(largest_count(how, r, c)), 0);
    rows.assign(static_cast<std::size_t>(r * c + 2 * gap), 0xaa);
    columns.assign(static_cast<std::size_t>(r * c + 2 * gap), 0xaa);
    row_scales.assign(static_cast<std::size_t>(row_scale_bytes(how, r, c)), 0xaa);
    column_scales.assign(static_cast<std::size_t>(std::max<std::int64_t>(column_scale_bytes(how, r, c), 1)), 0xaa);
  }
  std::int64_t numel() const { return matrix.rows * matrix.columns; }
  QuantizedArrays arrays() {
    return {.largest = largest.data(),
            .rows = rows.data(),
            .row_scales = row_scales.data(),
            .columns = columns.data(),
            .column_scales = column_scales.data()};
  }
  QuantizedPiece whole() const { return {.matrix = matrix, .first = 0, .numel = numel(), .values = 0}; }
  std::uint8_t byte(std::int64_t r, std::int64_t c) const {
    return rows[static_cast<std::size_t>(matrix.row + r * matrix.columns + c)];
  }
  std::uint8_t column_byte(std::int64_t i) const { return columns[static_cast<std::size_t>(matrix.column + i)]; }
  float row_scale(std::int64_t i) const {
    float x = 0;
    std::copy_n(row_scales.data() + 4 * i, 4, reinterpret_cast<std::uint8_t*>(&x));
    return x;
  }
  bool operator==(const Weight& other) const {
    const auto same_floats = [](const std::vector<float>& a, const std::vector<float>& b) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
        return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
      });
    };
    return rows == other.rows && columns == other.columns && row_scales == other.row_scales &&
           column_scales == other.column_scales && same_floats(largest, other.largest);
  }
};

/// All of a matrix from its masters: largest values, scales, bytes.
inline Weight quantized(Scaling scaling, std::int64_t r, std::int64_t c, const std::vector<float>& masters) {
  Weight w(scaling, r, c);
  const QuantizedPiece whole = w.whole();
  find_largest_ref(scaling, masters.data(), w.arrays(), {&whole, 1});
  scales_ref(scaling, w.arrays(), {&w.matrix, 1});
  quantize_ref(scaling, masters.data(), w.arrays(), {&whole, 1});
  return w;
}

/// Cuts of [0, numel) with `cuts` borders somewhere; pieces may be empty.
inline std::vector<std::int64_t> borders(std::int64_t numel, int cuts, std::mt19937& engine) {
  std::vector<std::int64_t> at = {0, numel};
  for (int i = 0; i < cuts; ++i)
    at.push_back(static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(numel + 1)));
  std::sort(at.begin(), at.end());
  return at;
}

// What is right, by other means.

/// The value of a finite E4M3 magnitude, by its definition.
inline double e4m3_value(int magnitude) {
  const int exponent = magnitude / 8, fraction = magnitude % 8;
  return exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
}
/// The nearest of the table's 127 values, ties to the even one, beyond 448 saturated.
inline std::uint8_t nearest_e4m3(float x) {
  if (std::isnan(x)) return 0x7f;
  const double size = std::abs(static_cast<double>(x));
  static const auto kTable = [] {
    std::array<double, 127> table{};
    for (int i = 0; i < 127; ++i) table[static_cast<std::size_t>(i)] = e4m3_value(i);
    return table;
  }();
  std::size_t high = 0;
  while (high < 126 && kTable[high] < size) ++high;
  std::size_t best = high;
  if (high > 0 && kTable[high] > size) {
    const double up = kTable[high] - size, down = size - kTable[high - 1];
    if (down < up || (down == up && high % 2 == 1)) best = high - 1;
  }
  return static_cast<std::uint8_t>(best + (std::signbit(x) ? 128 : 0));
}
inline double e4m3_number(std::uint8_t byte) {
  if ((byte & 0x7f) == 0x7f) return std::numeric_limits<double>::quiet_NaN();
  return (byte >= 128 ? -1 : 1) * e4m3_value(byte & 0x7f);
}

/// bf16(x) as a float: rounded to the nearest multiple of a unit of eight bits, ties to even, by std::nearbyint.
inline float to_bf16(float x) {
  if (!std::isfinite(x) || x == 0) return x;
  const int exponent = std::max(std::ilogb(x), -126);
  const double unit = std::ldexp(1.0, exponent - 7);
  const double rounded = std::nearbyint(static_cast<double>(x) / unit) * unit;
  // What would follow the largest bf16 is 2^128.
  return std::abs(rounded) >= 0x1p128 ? std::copysign(std::numeric_limits<float>::infinity(), x)
                                      : static_cast<float>(rounded);
}

}  // namespace ebb::kernels::test
