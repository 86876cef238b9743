// Largest values, scales, E4M3 bytes and column-wise copies are what the recipes say, by arithmetic of the test's own:
// loops over blocks in double, a table of E4M3, powers of two by exponents.
#include "kernels/quantize.hpp"

#include "kernels/quantize_math.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/quantize_cases.hpp"

using namespace ebb::kernels;
using namespace ebb::kernels::test;

namespace {

struct Shape {
  std::int64_t rows, columns;
};
constexpr Shape kShapes[] = {{1, 1},   {1, 300},   {300, 1},   {3, 5},     {31, 33},   {32, 32},  {33, 31},
                             {64, 96}, {127, 129}, {128, 128}, {129, 127}, {130, 260}, {257, 64}, {3, 1000}};

/// Largest |bf16| of rows [r0, r1) and columns [c0, c1), NaN if there is one; clipped to the matrix.
float largest_of(const std::vector<float>& masters, Shape s, Shape from, Shape to) {
  float largest = 0;
  for (std::int64_t r = from.rows; r < std::min(to.rows, s.rows); ++r) {
    for (std::int64_t c = from.columns; c < std::min(to.columns, s.columns); ++c) {
      const float x = std::abs(to_bf16(masters[static_cast<std::size_t>(r * s.columns + c)]));
      if (std::isnan(x)) return x;
      largest = std::max(largest, x);
    }
  }
  return largest;
}

bool same(float a, float b) { return std::isnan(a) ? std::isnan(b) : a == b; }

/// 448 / largest in fp32: rounded once from the quotient in long double, whose 64 bits decide every case but ties,
/// which a quotient of floats never is.
float fp32_scale(float largest) {
  if (largest == 0 || !std::isfinite(largest)) return 1;
  const auto scale = static_cast<float>(448.0L / static_cast<long double>(largest));
  return std::isinf(scale) ? std::numeric_limits<float>::max() : scale;
}
float floor_power(float x) { return std::ldexp(1.0F, std::ilogb(x)); }

/// The least exponent e >= -127 with 2^e >= x, as a byte.
std::uint8_t ceil_power(float x) {
  if (std::isnan(x)) return 0xff;
  if (std::isinf(x)) return 0xfe;
  int e = -127;
  while (std::ldexp(1.0, e) < static_cast<double>(x)) ++e;
  return static_cast<std::uint8_t>(e + 127);
}

struct Expected {
  float stored = 0;  // what bytes are multiplied by
  float scale = 0;   // what values are multiplied by
};
Expected mx_of(float largest) {
  const std::uint8_t byte = ceil_power(largest * (1.0F / 448.0F));
  if (byte == 0xff) return {std::nanf(""), std::nanf("")};
  return {static_cast<float>(std::ldexp(1.0, byte - 127)), static_cast<float>(std::ldexp(1.0, 127 - byte))};
}

void require_byte(std::uint8_t byte, float master, float scale) {
  const std::uint8_t want = nearest_e4m3(to_bf16(master) * scale);
  if (byte == want) return;
  CAPTURE(master, scale);
  REQUIRE(int{byte} == int{want});
}

void require_tensorwise(const std::vector<float>& masters, Shape s, const Weight& w) {
  const float largest = largest_of(masters, s, {0, 0}, s), scale = fp32_scale(largest);
  REQUIRE(same(w.largest[0], largest));
  REQUIRE(w.row_scale(0) == static_cast<float>(1.0L / scale));
  for (std::int64_t i = 0; i < w.numel(); ++i) {
    require_byte(w.rows[static_cast<std::size_t>(i)], masters[static_cast<std::size_t>(i)], scale);
  }
}

void require_blockwise(const std::vector<float>& masters, Shape s, const Weight& w) {
  const std::int64_t stride = (s.columns + 511) / 512 * 4;  // ceil(C / 128) up to a multiple of 4
  for (std::int64_t i = 0; i < (s.rows + 127) / 128; ++i) {
    for (std::int64_t j = 0; j < stride; ++j) {
      if (128 * j >= s.columns) {
        REQUIRE((w.largest[static_cast<std::size_t>(i * stride + j)] == 0 && w.row_scale(i * stride + j) == 0));
        continue;
      }
      const float largest = largest_of(masters, s, {128 * i, 128 * j}, {128 * i + 128, 128 * j + 128});
      const float scale = floor_power(fp32_scale(largest));
      REQUIRE(same(w.largest[static_cast<std::size_t>(i * stride + j)], largest));
      REQUIRE(w.row_scale(i * stride + j) == 1 / scale);
      for (std::int64_t r = 128 * i; r < std::min(128 * i + 128, s.rows); ++r) {
        for (std::int64_t c = 128 * j; c < std::min(128 * j + 128, s.columns); ++c) {
          require_byte(w.byte(r, c), masters[static_cast<std::size_t>(r * s.columns + c)], scale);
        }
      }
    }
  }
}

void require_mxfp8(const std::vector<float>& masters, Shape s, const Weight& w) {
  const std::int64_t blocks = (s.columns + 31) / 32, stride = (blocks + 3) / 4 * 4;
  const std::int64_t padded = (s.columns + 127) / 128 * 128;
  std::size_t meant = 0;  // scales that are not padding
  for (std::int64_t r = 0; r < s.rows; ++r) {
    for (std::int64_t b = 0; b < blocks; ++b) {
      const float largest = largest_of(masters, s, {r, 32 * b}, {r + 1, 32 * b + 32});
      REQUIRE(same(w.largest[static_cast<std::size_t>(r * blocks + b)], largest));
      const std::uint8_t byte = ceil_power(largest * (1.0F / 448.0F));
      REQUIRE(int{w.row_scales[static_cast<std::size_t>(r * stride + b)]} == int{byte});
      meant += byte != 0 ? 1 : 0;
      for (std::int64_t c = 32 * b; c < std::min(32 * b + 32, s.columns); ++c) {
        require_byte(w.byte(r, c), masters[static_cast<std::size_t>(r * s.columns + c)], mx_of(largest).scale);
      }
    }
  }
  std::size_t meant_columns = 0;
  for (std::int64_t b = 0; b < (s.rows + 31) / 32; ++b) {
    for (std::int64_t c = 0; c < s.columns; ++c) {
      const float largest = largest_of(masters, s, {32 * b, c}, {32 * b + 32, c + 1});
      REQUIRE(same(w.largest[static_cast<std::size_t>(s.rows * blocks + b * s.columns + c)], largest));
      const std::uint8_t byte = ceil_power(largest * (1.0F / 448.0F));
      REQUIRE(int{w.column_scales[static_cast<std::size_t>(b * padded + c)]} == int{byte});
      meant_columns += byte != 0 ? 1 : 0;
      for (std::int64_t r = 32 * b; r < std::min(32 * b + 32, s.rows); ++r) {
        const std::int64_t i = r * s.columns + c;
        require_byte(w.column_byte(i), masters[static_cast<std::size_t>(i)], mx_of(largest).scale);
      }
    }
  }
  const auto not_zero = [](const std::vector<std::uint8_t>& bytes) {
    return bytes.size() - static_cast<std::size_t>(std::count(bytes.begin(), bytes.end(), 0));
  };
  REQUIRE(not_zero(w.row_scales) == meant);  // all padding is 0
  REQUIRE(not_zero(w.column_scales) == meant_columns);
}

}  // namespace

TEST_CASE("largest values, scales and bytes follow the recipe, for all kinds of masters and odd shapes") {
  std::mt19937 engine(1);
  for (const Shape s : kShapes) {
    for (const Kind kind : kKinds) {
      CAPTURE(s.rows, s.columns, static_cast<int>(kind));
      const std::vector<float> masters = draw_masters(s.rows * s.columns, kind, engine);
      require_tensorwise(masters, s, quantized(Scaling::tensorwise, s.rows, s.columns, masters));
      require_blockwise(masters, s, quantized(Scaling::blockwise, s.rows, s.columns, masters));
      require_mxfp8(masters, s, quantized(Scaling::mxfp8, s.rows, s.columns, masters));
    }
  }
}

TEST_CASE("a scale follows from every positive bf16, infinity and NaN") {
  for (std::uint32_t bits = 0; bits <= 0x7fff; ++bits) {
    const auto largest = std::bit_cast<float>(bits << 16);
    const float scale = scale_of_largest(largest, false), power = scale_of_largest(largest, true);
    REQUIRE(scale == fp32_scale(largest));
    REQUIRE(power == floor_power(fp32_scale(largest)));
    REQUIRE(int{e8m0_of_largest(largest)} == int{ceil_power(largest * (1.0F / 448.0F))});
    if (bits == 0 || bits >= 0x7f80) continue;
    // No value under the largest leaves E4M3's range; a power of two wastes less than half of it.
    REQUIRE(static_cast<double>(largest) * static_cast<double>(power) <= 448);
    if (power < 0x1p127F) REQUIRE(static_cast<double>(largest) * static_cast<double>(power) > 223);
    REQUIRE(static_cast<double>(largest) * static_cast<double>(reciprocal_of_e8m0(e8m0_of_largest(largest))) <=
            448.00003);
  }
}

TEST_CASE("E8M0 bytes: the least power of two that is not below; subnormals, infinity and NaN as stated") {
  std::mt19937 engine(2);
  for (int i = 0; i < 200'000; ++i) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(engine()) & 0x7fffffff);
    if (std::isfinite(x) && x > 0x1p127F) {
      REQUIRE(int{e8m0_of(x)} == 0xfe);  // 2^127 is the greatest power there is
    } else {
      REQUIRE(int{e8m0_of(x)} == int{ceil_power(x)});
    }
  }
  const auto of_bits = [](std::uint32_t bits) { return int{e8m0_of(std::bit_cast<float>(bits))}; };
  REQUIRE((of_bits(0) == 0 && of_bits(1) == 0 && of_bits(0x400000) == 0 && of_bits(0x400001) == 1));
  REQUIRE((of_bits(0x800000) == 1 && of_bits(0x800001) == 2 && of_bits(0x7f000000) == 0xfe));
  REQUIRE((of_bits(0x7f800000) == 0xfe && of_bits(0x7fc00000) == 0xff));
  for (int byte = 0; byte < 255; ++byte) {
    REQUIRE(static_cast<double>(value_of_e8m0(static_cast<std::uint8_t>(byte))) == std::ldexp(1.0, byte - 127));
    REQUIRE(static_cast<double>(reciprocal_of_e8m0(static_cast<std::uint8_t>(byte))) == std::ldexp(1.0, 127 - byte));
  }
  REQUIRE((std::isnan(value_of_e8m0(0xff)) && std::isnan(reciprocal_of_e8m0(0xff))));
}

TEST_CASE("values come back as byte times scale, from rows and from columns, in fp32 and bf16") {
  std::mt19937 engine(3);
  for (const Shape s : {Shape{1, 1}, Shape{33, 70}, Shape{130, 131}, Shape{256, 64}}) {
    for (const Scaling scaling : kScalings) {
      for (const Kind kind : {Kind::normal, Kind::denormal, Kind::special}) {
        CAPTURE(s.rows, s.columns, static_cast<int>(scaling), static_cast<int>(kind));
        Weight w = quantized(scaling, s.rows, s.columns, draw_masters(s.rows * s.columns, kind, engine));
        if (scaling != Scaling::mxfp8) make_columns_ref(scaling, w.arrays(), {&w.matrix, 1});
        for (const bool from_columns : {false, true}) {
          std::vector<float> wide(static_cast<std::size_t>(w.numel()));
          std::vector<std::uint16_t> narrow(wide.size());
          const QuantizedPiece whole = w.whole();
          dequantize_ref(scaling, w.arrays(), {.values = wide.data(), .type = Type::fp32, .from_columns = from_columns},
                         {&whole, 1});
          dequantize_ref(scaling, w.arrays(), {.values = narrow.data(), .from_columns = from_columns}, {&whole, 1});
          const std::int64_t tiles = (s.columns + 511) / 512 * 4, blocks = (s.columns + 127) / 128 * 4;
          for (std::int64_t i = 0; i < w.numel(); ++i) {
            const std::int64_t r = i / s.columns, c = i % s.columns;
            double scale = 0;
            if (scaling == Scaling::tensorwise) scale = static_cast<double>(w.row_scale(0));
            if (scaling == Scaling::blockwise) scale = static_cast<double>(w.row_scale(r / 128 * tiles + c / 128));
            if (scaling == Scaling::mxfp8) {
              const std::uint8_t byte = from_columns
                                            ? w.column_scales[static_cast<std::size_t>(r / 32 * 32 * blocks + c)]
                                            : w.row_scales[static_cast<std::size_t>(r * blocks + c / 32)];
              scale = byte == 0xff ? std::nan("") : std::ldexp(1.0, byte - 127);
            }
            const bool anew = from_columns && scaling == Scaling::mxfp8;
            // A product of 4 and 24 bits is exact in double; then it is rounded once.
            const auto want = static_cast<float>(e4m3_number(anew ? w.column_byte(i) : w.byte(r, c)) * scale);
            REQUIRE(same(wide[static_cast<std::size_t>(i)], want));
            if (std::isnan(want)) {
              REQUIRE(std::bit_cast<std::uint32_t>(wide[static_cast<std::size_t>(i)]) == 0x7fffffff);
              REQUIRE(narrow[static_cast<std::size_t>(i)] == 0x7fff);
            } else {
              REQUIRE(std::bit_cast<float>(std::uint32_t{narrow[static_cast<std::size_t>(i)]} << 16) == to_bf16(want));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("transposed copies hold every byte and every tile's scale in the other order; padding is 0") {
  std::mt19937 engine(4);
  for (const Shape s : kShapes) {
    for (const Scaling scaling : {Scaling::tensorwise, Scaling::blockwise}) {
      Weight w = quantized(scaling, s.rows, s.columns, draw_masters(s.rows * s.columns, Kind::wide, engine));
      make_columns_ref(scaling, w.arrays(), {&w.matrix, 1});
      for (std::int64_t r = 0; r < s.rows; ++r) {
        for (std::int64_t c = 0; c < s.columns; ++c) REQUIRE(w.column_byte(c * s.rows + r) == w.byte(r, c));
      }
      if (scaling == Scaling::tensorwise) continue;
      const std::int64_t tiles = (s.columns + 511) / 512 * 4, turned = (s.rows + 511) / 512 * 4;
      for (std::int64_t j = 0; j < (s.columns + 127) / 128; ++j) {
        for (std::int64_t i = 0; i < turned; ++i) {
          float scale = -1;
          std::copy_n(w.column_scales.data() + 4 * (j * turned + i), 4, reinterpret_cast<std::uint8_t*>(&scale));
          REQUIRE(scale == (128 * i < s.rows ? w.row_scale(i * tiles + j) : 0));
        }
      }
    }
  }
}

TEST_CASE("bytes of scales and counts of largest values are the recipes'") {
  REQUIRE(largest_count(Scaling::tensorwise, 300, 500) == 1);
  REQUIRE(row_scale_bytes(Scaling::tensorwise, 300, 500) == 4);
  REQUIRE(column_scale_bytes(Scaling::tensorwise, 300, 500) == 0);
  REQUIRE(largest_count(Scaling::blockwise, 300, 600) == 3 * 8);
  REQUIRE(row_scale_bytes(Scaling::blockwise, 300, 600) == 4 * 3 * 8);
  REQUIRE(column_scale_bytes(Scaling::blockwise, 300, 600) == 4 * 5 * 4);
  REQUIRE(largest_count(Scaling::mxfp8, 300, 600) == 300 * 19 + 10 * 600);
  REQUIRE(row_scale_bytes(Scaling::mxfp8, 300, 600) == 384 * 20);
  REQUIRE(column_scale_bytes(Scaling::mxfp8, 300, 600) == 12 * 640);
}
