// Scaling, casts and fills over runs: GPU launchers and their references, which give the same bits.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/runs.hpp"
#include "kernels/types.hpp"

namespace ebb::kernels {

/// x = x * *coefficient over fp32 or bf16 (product in fp32, rounded back). The coefficient is read on the device when
/// the kernel runs. All elements are read and written even where it is 1.
[[nodiscard]] int launch_scale(Type type, void* base, std::span<const Run> runs, const float* coefficient,
                               void* stream);
void scale_ref(Type type, void* base, std::span<const Run> runs, float coefficient);

/// Arrays of a cast: fp32 to bf16, fp16 or fp8 (x * scale, saturated), or bf16 or fp16 to fp32 (exact; a NaN of fp16
/// becomes the GPU's). Only fp8 uses `scale`.
struct CastArrays {
  const void* source = nullptr;
  void* destination = nullptr;
  Type source_type = Type::fp32;
  Type destination_type = Type::bf16;
  float scale = 1;
};
[[nodiscard]] int launch_cast(const CastArrays& arrays, std::span<const CastRun> runs, void* stream);
void cast_ref(const CastArrays& arrays, std::span<const CastRun> runs);

/// Every byte of the runs becomes `byte`: 0 for zeros, kPoison for a NaN in every type.
inline constexpr std::uint8_t kPoison = 0xff;
[[nodiscard]] int launch_fill_bytes(Type type, void* base, std::span<const Run> runs, std::uint8_t byte, void* stream);

/// Element i of a run becomes scale * u, u uniform in [-1, 1) from (seed, run.index + i) alone: the same values
/// whatever the runs. fp32, or rounded to bf16. Philox4x32-10 of counter (e / 4, 0, kFillDomain), lane e % 4.
inline constexpr std::uint32_t kFillDomain = 0x46494c4c;
[[nodiscard]] int launch_fill_random(Type type, void* base, std::span<const Run> runs, std::uint64_t seed, float scale,
                                     void* stream);
void fill_random_ref(Type type, void* base, std::span<const Run> runs, std::uint64_t seed, float scale);

}  // namespace ebb::kernels
