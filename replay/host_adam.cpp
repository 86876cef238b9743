#include "replay/host_adam.hpp"

#include <algorithm>
#include <bit>

#include "kernels/digest.hpp"

// One clone for each vector width, chosen when the program starts; none of them contracts (CMakeLists.txt).
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define EBB_VECTOR_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define EBB_VECTOR_CLONES
#endif

namespace ebb::replay {

namespace {

constexpr std::int64_t kPiece = std::int64_t{1} << 16;  // elements a thread takes at once: 1.75 MB of traffic

/// A NaN as the GPU's arithmetic returns it (kernels/types.hpp); inline, so that the loop stays a vector's.
inline float canonical(float x) { return x == x ? x : std::bit_cast<float>(0x7fffffffU); }

EBB_VECTOR_CLONES
void update(const float* __restrict grad, float* __restrict exp_avg, float* __restrict exp_avg_sq,
            float* __restrict master, std::int64_t numel, const kernels::AdamwStep& constants) {
  const kernels::AdamwStep step = constants;
  for (std::int64_t i = 0; i < numel; ++i) {
    const float p = master[i];
    const float g = grad[i];
    const float m = step.beta1 * exp_avg[i] + step.one_minus_beta1 * g;
    const float v = step.beta2 * exp_avg_sq[i] + step.one_minus_beta2 * g * g;
    const float denominator = __builtin_sqrtf(v / step.bias_correction2) + step.epsilon;
    const float direction = (m / step.bias_correction1) / denominator + step.weight_decay * p;
    exp_avg[i] = canonical(m);
    exp_avg_sq[i] = canonical(v);
    master[i] = canonical(p - step.learning_rate * direction);
  }
}

struct Piece {
  std::size_t run = 0;
  std::int64_t first = 0;
  std::int64_t numel = 0;
};

template <class Run>
std::vector<Piece> pieces_of(std::span<const Run> runs) {
  std::vector<Piece> pieces;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    for (std::int64_t i = 0; i < runs[r].numel; i += kPiece) {
      pieces.push_back({r, i, std::min(kPiece, runs[r].numel - i)});
    }
  }
  return pieces;
}

template <class To, class From>
To* floats(From* base, std::int64_t bytes, std::int64_t elements) {
  return reinterpret_cast<To*>(base + bytes) + elements;
}

}  // namespace

void host_adam(HostPool& pool, const HostArrays& arrays, std::span<const kernels::AdamwRun> runs,
               const kernels::AdamwStep& step) {
  const std::vector<Piece> pieces = pieces_of(runs);
  pool.for_each(pieces.size(), [&](std::size_t i) {
    const Piece& piece = pieces[i];
    const kernels::AdamwRun& run = runs[piece.run];
    update(floats<const float>(arrays.grad, run.grad, piece.first),
           floats<float>(arrays.exp_avg, run.exp_avg, piece.first),
           floats<float>(arrays.exp_avg_sq, run.exp_avg_sq, piece.first),
           floats<float>(arrays.master, run.master, piece.first), piece.numel, step);
  });
}

std::uint64_t host_digest(HostPool& pool, const std::byte* base, std::span<const kernels::Run> runs,
                          std::uint64_t tag) {
  const std::vector<Piece> pieces = pieces_of(runs);
  std::atomic<std::uint64_t> sum{0};
  pool.for_each(pieces.size(), [&](std::size_t i) {
    const Piece& piece = pieces[i];
    const kernels::Run& whole = runs[piece.run];
    const kernels::Run run{whole.offset + 4 * piece.first, whole.index + piece.first, piece.numel};
    sum.fetch_add(kernels::digest_ref(kernels::Type::fp32, base, {&run, 1}, tag), std::memory_order_relaxed);
  });
  return sum.load();
}

}  // namespace ebb::replay
