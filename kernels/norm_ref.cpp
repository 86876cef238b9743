// Sum of squares, clip coefficient and count of non-finite elements on the CPU: the definition of their bits.
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/access_ref.hpp"
#include "kernels/nonfinite.hpp"
#include "kernels/norm.hpp"
#include "kernels/sum_ref.hpp"

namespace ebb::kernels {

std::int64_t sum_of_squares_workspace(std::span<const Run> runs) {
  std::int64_t tiles = 0;
  for (const Run& run : runs) tiles += sum_tiles(run.numel);
  return tiles * static_cast<std::int64_t>(sizeof(double));
}

float sum_of_squares_ref(Type type, const void* base, std::span<const Run> runs) {
  std::vector<double> tiles;
  for (const Run& run : runs) {
    const char* const first = static_cast<const char*>(base) + run.offset;
    for (std::int64_t begin = 0; begin < run.numel; begin += kSumTile) {
      TileSum tile;
      for (std::int64_t i = begin; i < std::min(begin + kSumTile, run.numel); ++i) {
        const double x = read_value(type, first + i * bytes_of(type));
        tile.add(i, x * x);
      }
      tiles.push_back(tile.total());
    }
  }
  return canonical(static_cast<float>(final_sum_ref(tiles)));
}

void clip_coefficient_ref(const Clip& clip, float max_norm, float inverse_scale) {
  const float norm = canonical(std::sqrt(*clip.sum) * inverse_scale);
  const float quotient = max_norm / (norm + 1e-6F);
  if (clip.norm != nullptr) *clip.norm = norm;
  *clip.coefficient = inverse_scale * (quotient < 1 ? quotient : 1);
  if (clip.nonfinite != nullptr) *clip.nonfinite = std::isfinite(*clip.sum) ? 0 : 1;
}

std::uint64_t count_nonfinite_ref(Type type, const void* base, std::span<const Run> runs) {
  std::uint64_t count = 0;
  for (const Run& run : runs) {
    const char* const first = static_cast<const char*>(base) + run.offset;
    for (std::int64_t i = 0; i < run.numel; ++i) {
      const std::uint32_t bits = read_bits(type, first + i * bytes_of(type));
      if ((bits & nonfinite_mask(type)) == nonfinite_mask(type)) ++count;
    }
  }
  return count;
}

}  // namespace ebb::kernels
