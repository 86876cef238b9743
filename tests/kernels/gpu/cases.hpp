// Random data and random runs for the GPU check.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/access_ref.hpp"
#include "kernels/types.hpp"

namespace ebb::kernels::gpu {

/// How the runs of a case lie: together (all arrays shifted alike, so that vectors are possible) or each anywhere.
enum class Placing { aligned, shifted, anywhere };
inline constexpr Placing kPlacings[] = {Placing::aligned, Placing::shifted, Placing::anywhere};

/// Lengths of runs: none, one of every small length, one long, hundreds (more than a table holds).
inline std::vector<std::vector<std::int64_t>> run_lengths(std::mt19937& engine) {
  std::vector<std::int64_t> tails, hundreds;
  for (std::int64_t n = 0; n <= 70; ++n) tails.push_back(n);
  for (int i = 0; i < 1100; ++i) hundreds.push_back(static_cast<std::int64_t>(engine() % 90));
  return {{},
          {1},
          {511},
          {512},
          {513},
          {2047, 0, 2048, 2049},
          {8191, 8192, 8193},
          tails,
          {30'011},
          hundreds,
          {3, 20'000, 1, 9'999, 2048, 2048, 2048, 2048}};
}

/// Places runs of these lengths in one array, with gaps; element offsets. `shift` runs with the gaps so that arrays
/// placed with the same engine state and placing agree modulo 4.
inline std::vector<std::int64_t> place(const std::vector<std::int64_t>& lengths, Placing placing,
                                       std::mt19937& engine) {
  std::vector<std::int64_t> offsets;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    at = (at + 7) / 4 * 4;  // a gap of four to seven elements
    if (placing == Placing::shifted) at += static_cast<std::int64_t>(i % 4);
    if (placing == Placing::anywhere) at += static_cast<std::int64_t>(engine() % 4);
    offsets.push_back(at);
    at += lengths[i];
  }
  return offsets;
}
inline std::int64_t extent(const std::vector<std::int64_t>& lengths, const std::vector<std::int64_t>& offsets) {
  return lengths.empty() ? 8 : offsets.back() + lengths.back() + 8;
}

struct Values32 {
  float scale = 1;
  bool negative = true;
  int specials = 97;  // about one value in so many is an infinity, a NaN, a subnormal or huge; 0: none
};

/// Values of many magnitudes in an array of `type`.
inline std::vector<char> random_array(Type type, std::int64_t numel, const Values32& what, std::mt19937& engine) {
  constexpr std::uint32_t kSpecials[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xffc01234, 0x00000001,
                                         0x80000000, 0x007fffff, 0x7f61b1e6, 0x3f808000, 0x3f818000,
                                         0x12800000, 0x17800000, 0x4e800000};  // the last: ends of quick divisions
  std::normal_distribution<float> normal;
  std::vector<char> bytes(static_cast<std::size_t>(numel * bytes_of(type)));
  for (std::int64_t i = 0; i < numel; ++i) {
    float x = std::ldexp(normal(engine) * what.scale, static_cast<int>(engine() % 24) - 20);
    if (what.specials > 0 && engine() % static_cast<unsigned>(what.specials) == 0) {
      x = std::bit_cast<float>(kSpecials[engine() % std::size(kSpecials)]);
    }
    if (!what.negative) x = std::abs(x);
    write_value(type, bytes.data() + i * bytes_of(type), x);
  }
  return bytes;
}

}  // namespace ebb::kernels::gpu
