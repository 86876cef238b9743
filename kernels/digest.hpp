// Order-independent checksum of state bits.
//
// The digest of a set of elements is the sum modulo 2^64 of digest_element(key, index, bits) over them: integer
// addition commutes, so chunks, order, addresses and GPUs do not matter, while a wrong bit, a swapped or a missing
// element do.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/host_device.hpp"
#include "kernels/runs.hpp"
#include "kernels/types.hpp"

namespace ebb::kernels {

/// The finalizer of MurmurHash3's 128-bit variant (Appleby, public domain): a bijection in which each input bit turns
/// each output bit with probability near one half.
EBB_HOST_DEVICE constexpr std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdULL;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

inline constexpr std::uint64_t kDigestStride = 0x9e3779b97f4a7c15ULL;  // 2^64 / golden ratio: spreads neighbours

/// `key` is mix64(tag): tags tell states apart (exp_avg from exp_avg_sq). `index` is the owner's element index.
EBB_HOST_DEVICE constexpr std::uint64_t digest_element(std::uint64_t key, std::uint64_t index, std::uint32_t bits) {
  return mix64((key + index * kDigestStride) ^ bits);
}

/// *digest += the digest of the runs (device memory, 8-byte aligned; the caller zeroes it). Any type.
[[nodiscard]] int launch_digest(Type type, const void* base, std::span<const Run> runs, std::uint64_t tag,
                                std::uint64_t* digest, void* stream);
std::uint64_t digest_ref(Type type, const void* base, std::span<const Run> runs, std::uint64_t tag);

}  // namespace ebb::kernels
