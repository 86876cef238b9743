// The digest on the CPU.
#include "kernels/access_ref.hpp"
#include "kernels/digest.hpp"

namespace ebb::kernels {

std::uint64_t digest_ref(Type type, const void* base, std::span<const Run> runs, std::uint64_t tag) {
  const std::uint64_t key = mix64(tag);
  std::uint64_t sum = 0;
  for (const Run& run : runs) {
    const char* const first = static_cast<const char*>(base) + run.offset;
    for (std::int64_t i = 0; i < run.numel; ++i) {
      const auto index = static_cast<std::uint64_t>(run.index + i);
      sum += digest_element(key, index, read_bits(type, first + i * bytes_of(type)));
    }
  }
  return sum;
}

}  // namespace ebb::kernels
