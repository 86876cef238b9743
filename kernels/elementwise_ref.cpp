// Scaling, casts and random fills on the CPU: the definition of their bits.
#include <cstdint>

#include "kernels/access_ref.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/random_value.hpp"

namespace ebb::kernels {

void scale_ref(Type type, void* base, std::span<const Run> runs, float coefficient) {
  for (const Run& run : runs) {
    char* const first = static_cast<char*>(base) + run.offset;
    for (std::int64_t i = 0; i < run.numel; ++i) {
      char* const at = first + i * bytes_of(type);
      write_value(type, at, canonical(read_value(type, at) * coefficient));
    }
  }
}

void cast_ref(const CastArrays& arrays, std::span<const CastRun> runs) {
  for (const CastRun& run : runs) {
    const char* const from = static_cast<const char*>(arrays.source) + run.source;
    char* const to = static_cast<char*>(arrays.destination) + run.destination;
    for (std::int64_t i = 0; i < run.numel; ++i) {
      const float x = read_value(arrays.source_type, from + i * bytes_of(arrays.source_type));
      write_value(arrays.destination_type, to + i * bytes_of(arrays.destination_type),
                  arrays.destination_type == Type::fp8_e4m3 ? x * arrays.scale : x);
    }
  }
}

void fill_random_ref(Type type, void* base, std::span<const Run> runs, std::uint64_t seed, float scale) {
  for (const Run& run : runs) {
    char* const first = static_cast<char*>(base) + run.offset;
    for (std::int64_t i = 0; i < run.numel;) {
      auto e = static_cast<std::uint64_t>(run.index + i);
      const Philox group = random_group(seed, e / 4);
      do {
        write_value(type, first + i * bytes_of(type), random_value(lane_of(group, e % 4), scale));
        ++i;
      } while (++e % 4 != 0 && i < run.numel);
    }
  }
}

}  // namespace ebb::kernels
