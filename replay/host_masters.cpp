#include "replay/host_masters.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "kernels/elementwise.hpp"
#include "models/errors.hpp"
#include "replay/kernel_type.hpp"

namespace ebb::replay {

namespace {

constexpr std::int64_t kAtOnce = 1 << 16;  // elements that a thread takes

/// Uniform values as fp32, rounded to `type` on the way.
void draw(kernels::Type type, std::int64_t padded, std::int64_t numel, std::uint64_t seed, float* to) {
  const kernels::Run run{0, padded, numel};
  if (type == kernels::Type::bf16) {
    std::vector<std::uint16_t> rounded(static_cast<std::size_t>(numel));
    kernels::fill_random_ref(type, rounded.data(), {&run, 1}, seed, 1.0F);
    std::transform(rounded.begin(), rounded.end(), to, kernels::fp32_from_bf16);
    return;
  }
  kernels::fill_random_ref(kernels::Type::fp32, to, {&run, 1}, seed, 1.0F);
  if (type == kernels::Type::fp32) return;
  EBB_ASSERT(type == kernels::Type::fp16);
  std::transform(to, to + numel, to, [](float x) { return kernels::fp32_from_fp16(kernels::fp16_from_fp32(x)); });
}

}  // namespace

void make_host_masters(HostPool& pool, const HostMasters& masters, Dtype type, std::uint64_t seed, std::byte* pinned) {
  struct Part {
    std::int64_t padded;
    std::int64_t numel;
    std::byte* to;
  };
  std::vector<Part> parts;
  for (const HostMasters::Run& run : masters.runs) {
    for (std::int64_t i = 0; i < run.numel.value; i += kAtOnce) {
      parts.push_back({run.at.value + i, std::min(kAtOnce, run.numel.value - i), pinned + run.host_at.value + 4 * i});
    }
  }
  pool.for_each(parts.size(), [&](std::size_t i) {
    const Part& part = parts[i];
    draw(kernel_type(type), part.padded, part.numel, seed, reinterpret_cast<float*>(part.to));
  });
}

}  // namespace ebb::replay
