// The matrix product: blocks of 128 threads compute 128 x 128 of C, each of their four warps 64 x 64, in steps of 64
// along k. Three stages of operands lie in shared memory (96 KiB, so that two blocks fit an SM with 228 KiB): while one
// is multiplied, the next two are on their way. Rows there are 128 bytes; the 16-byte pieces of row r are stored at
// piece ^ (r mod 8), so that the eight rows of a tile come from eight different groups of banks.
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/gemm.hpp"
#include "kernels/tensor_core.cuh"

namespace ebb::kernels {
namespace {

constexpr int kThreads = 128;
constexpr int kTile = 128;  // rows and columns of C a block
constexpr int kStep = 64;   // along k
constexpr int kStages = 3;
constexpr int kPieces = kStep / 8;                          // of 16 bytes in a row
constexpr std::uint32_t kOperandBytes = kTile * kStep * 2;  // of one operand in one stage
constexpr std::uint32_t kStageBytes = 2 * kOperandBytes;
constexpr int kSharedBytes = kStages * kStageBytes;
constexpr int kInner = 16;  // k of one instruction
constexpr int kGroup = 8;   // rows of blocks that run together and share operands in L2
static_assert(kTile == kGemmMultiple);

__device__ std::uint32_t piece_at(int row, int piece) {
  return static_cast<std::uint32_t>(row * kPieces + (piece ^ (row % kPieces))) * 16;
}

// Rows [0, 128) and k [0, 64) of an operand, by all threads.
__device__ void fetch(std::uint32_t to_shared, const __nv_bfloat16* from, std::int64_t size) {
  const int piece = static_cast<int>(threadIdx.x) % kPieces;
#pragma unroll
  for (int i = 0; i < kTile * kPieces / kThreads; ++i) {
    const int row = static_cast<int>(threadIdx.x) / kPieces + i * (kThreads / kPieces);
    copy_async(to_shared + piece_at(row, piece), from + row * size + piece * 8);
  }
}

// Operands of one instruction step for a warp: 4 tiles of 16 rows of A, 8 of 8 columns of B.
struct Fragments {
  std::uint32_t a[4][4];
  std::uint32_t b[4][4];  // two tiles each: k 0..7 and 8..15 of one, then of the next
};

__device__ void load(Fragments& f, std::uint32_t a, std::uint32_t b, int warp_row, int warp_column, int inner) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    load_tiles(f.a[i], a + piece_at(warp_row + i * 16 + lane % 16, inner * 2 + lane / 16));
    load_tiles(f.b[i], b + piece_at(warp_column + i * 16 + lane % 8 + lane / 16 * 8, inner * 2 + lane / 8 % 2));
  }
}

__device__ void multiply(float (&c)[4][8][4], const Fragments& f) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j) multiply_add(c[i][j], f.a[i], f.b[j / 2][j % 2 * 2], f.b[j / 2][j % 2 * 2 + 1]);
  }
}

// A thread holds two neighbours in a row, and two more eight rows below.
__device__ void write(__nv_bfloat16* c, std::int64_t size, const float (&sums)[4][8][4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      __nv_bfloat16* const at = c + (i * 16 + lane / 4) * size + j * 8 + lane % 4 * 2;
      *reinterpret_cast<__nv_bfloat162*>(at) = __floats2bfloat162_rn(sums[i][j][0], sums[i][j][1]);
      *reinterpret_cast<__nv_bfloat162*>(at + 8 * size) = __floats2bfloat162_rn(sums[i][j][2], sums[i][j][3]);
    }
  }
}

// Blocks walk down kGroup rows of tiles before they go to the next column.
struct Corner {
  std::int64_t row, column;
};
__device__ Corner corner_of(int block, int tiles) {
  const int group = block / (kGroup * tiles);
  const int rows = min(kGroup, tiles - group * kGroup);
  const int within = block % (kGroup * tiles);
  return {static_cast<std::int64_t>(group * kGroup + within % rows) * kTile,
          static_cast<std::int64_t>(within / rows) * kTile};
}

__global__ void __launch_bounds__(kThreads, 2)
    gemm_kernel(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, std::int64_t size) {
  extern __shared__ uint4 shared[];
  const std::uint32_t stages = shared_address(shared);
  const Corner corner = corner_of(static_cast<int>(blockIdx.x), static_cast<int>(size / kTile));
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_row = warp / 2 * 64;
  const int warp_column = warp % 2 * 64;
  a += corner.row * size;
  b += corner.column * size;
  const int steps = static_cast<int>(size / kStep);
  const auto fetch_step = [&](int step) {
    if (step < steps) {
      const std::uint32_t stage = stages + static_cast<std::uint32_t>(step % kStages) * kStageBytes;
      fetch(stage, a + step * kStep, size);
      fetch(stage + kOperandBytes, b + step * kStep, size);
    }
    commit_copies();  // also an empty group, so that the count of pending groups means the same in every step
  };

  float sums[4][8][4] = {};
  for (int step = 0; step < kStages - 1; ++step) fetch_step(step);
  for (int step = 0; step < steps; ++step) {
    wait_copies<kStages - 2>();
    __syncthreads();  // this step's operands are there for all, and the stage before it is free
    fetch_step(step + kStages - 1);
    const std::uint32_t stage = stages + static_cast<std::uint32_t>(step % kStages) * kStageBytes;
    Fragments fragments[2];
    load(fragments[0], stage, stage + kOperandBytes, warp_row, warp_column, 0);
#pragma unroll
    for (int inner = 0; inner < kStep / kInner; ++inner) {
      if (inner + 1 < kStep / kInner) {
        load(fragments[(inner + 1) % 2], stage, stage + kOperandBytes, warp_row, warp_column, inner + 1);
      }
      multiply(sums, fragments[inner % 2]);
    }
  }
  write(c + (corner.row + warp_row) * size + corner.column + warp_column, size, sums);
}

bool aligned(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; }

}  // namespace

int launch_gemm(const Gemm& gemm, void* stream) {
  constexpr std::int64_t kMaxSize = std::int64_t{1} << 20;  // blocks stay within 2^31
  if (gemm.size <= 0 || gemm.size > kMaxSize || gemm.size % kGemmMultiple != 0) return cudaErrorInvalidValue;
  if (!aligned(gemm.a) || !aligned(gemm.b) || !aligned(gemm.c)) return cudaErrorInvalidValue;
  // Belongs to the current device, so it is set again for each launch; it costs well under a microsecond.
  const cudaError_t code = cudaFuncSetAttribute(gemm_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  if (code != cudaSuccess) return code;
  const std::int64_t tiles = gemm.size / kTile;
  gemm_kernel<<<static_cast<unsigned>(tiles * tiles), kThreads, kSharedBytes, static_cast<cudaStream_t>(stream)>>>(
      static_cast<const __nv_bfloat16*>(gemm.a), static_cast<const __nv_bfloat16*>(gemm.b),
      static_cast<__nv_bfloat16*>(gemm.c), gemm.size);
  return cudaGetLastError();
}

}  // namespace ebb::kernels
