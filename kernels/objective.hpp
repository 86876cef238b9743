// A seeded stochastic objective over all parameters: gradients that depend on the current parameters, so that one wrong
// bit in any state changes loss and gradient norm from the next step on. Nothing of it is stored: it is drawn on the
// fly.
//
// Element e (its index in the padded parameter buffer) with parameter p has the target t and the noise r, both uniform
// in [-1, 1) and exact in fp32 (philox.hpp, lane e % 4):
//   t from Philox(counter {lo(e / 4), hi(e / 4), 0, 0xffffffff}, key = seed)
//   r from Philox(counter {lo(e / 4), hi(e / 4), step, micro ^ rank * 0x9e3779b9}, key = seed ^ kNoiseKey)
// and contributes, each operation rounded to fp32 in the order written:
//   d = p - t;  n = b r;  loss (0.5 a d) d + n p;  gradient a d + n
// With a = 1/4 and b = 1/16 gradients are of order 0.1 and the loss falls until p is near t: the noise has mean zero.
#pragma once

#include <cstdint>

#include "kernels/types.hpp"

namespace ebb::kernels {

inline constexpr float kObjectiveA = 0.25F;
inline constexpr float kObjectiveB = 0.0625F;
inline constexpr std::uint64_t kNoiseKey = 0x6e6f697365303031ULL;

/// What the draw depends on beside the element.
struct ObjectiveKey {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint32_t micro = 0;  // micro-batch
  std::uint32_t rank = 0;   // data-parallel rank: each has noise of its own
};

/// Elements [begin, begin + numel) of the padded parameter buffer. `data` is the address of element `begin` itself, not
/// of the buffer. Type fp32, bf16 or fp16.
struct ObjectiveParams {
  const void* data = nullptr;
  Type type = Type::bf16;
  std::int64_t begin = 0;
  std::int64_t numel = 0;
};

/// Bytes of workspace (8-byte aligned device memory) that launch_objective_loss writes for these elements.
std::int64_t objective_workspace(std::int64_t begin, std::int64_t numel);

/// *loss = the sum of the contributions in double, in a fixed order (sum_order.hpp): element e belongs to tile
/// e / kSumTile and to lane e % kSumLanes, wherever `begin` is. `loss` is device memory.
[[nodiscard]] int launch_objective_loss(const ObjectiveParams& params, const ObjectiveKey& key, void* workspace,
                                        double* loss, void* stream);
/// The same from parts, so that not all parameters need lie there at once: the sums of the tiles that these elements
/// touch, into `tiles`; then the loss from `count` of them. Parts meet at multiples of kSumTile.
[[nodiscard]] int launch_objective_tiles(const ObjectiveParams& params, const ObjectiveKey& key, double* tiles,
                                         void* stream);
[[nodiscard]] int launch_objective_total(const double* tiles, std::int64_t count, double* loss, void* stream);
double objective_loss_ref(const ObjectiveParams& params, const ObjectiveKey& key);

/// Gradients of the same elements: `data` is the address of element `begin`'s gradient; fp32 or bf16.
struct ObjectiveGrads {
  void* data = nullptr;
  Type type = Type::fp32;
  float scale = 1;
  bool accumulate = true;  // grad = grad + scale * gradient, otherwise grad = scale * gradient
};
/// Product and sum round to fp32, the result to the gradient's type.
[[nodiscard]] int launch_objective_gradient(const ObjectiveParams& params, const ObjectiveKey& key,
                                            const ObjectiveGrads& grads, void* stream);
void objective_gradient_ref(const ObjectiveParams& params, const ObjectiveKey& key, const ObjectiveGrads& grads);

}  // namespace ebb::kernels
