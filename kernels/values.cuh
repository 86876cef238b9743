// Elements of each type on the device: one, or four side by side in the widest word that holds them. The conversions
// give types_ref.cpp's bits.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>

#include "kernels/types.hpp"

namespace ebb::kernels {

/// `Bits` holds one element; `Vector` four, element 0 in the lowest bits.
template <Type kType>
struct Values;

template <>
struct Values<Type::fp32> {
  using Bits = std::uint32_t;
  using Vector = uint4;
  static __device__ float get(Bits bits) { return __uint_as_float(bits); }
  static __device__ Bits put(float x) { return __float_as_uint(x); }
};

template <>
struct Values<Type::bf16> {
  using Bits = std::uint16_t;
  using Vector = uint2;
  static __device__ float get(Bits bits) { return __uint_as_float(static_cast<std::uint32_t>(bits) << 16); }
  static __device__ Bits put(float x) { return __bfloat16_as_ushort(__float2bfloat16_rn(x)); }
};

template <>
struct Values<Type::fp16> {
  using Bits = std::uint16_t;
  using Vector = uint2;
  static __device__ float get(Bits bits) { return __half2float(__ushort_as_half(bits)); }
  static __device__ Bits put(float x) { return __half_as_ushort(__float2half_rn(x)); }
};

template <>
struct Values<Type::fp8_e4m3> {
  using Bits = std::uint8_t;
  using Vector = std::uint32_t;
  static __device__ Bits put(float x) { return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3); }
};

template <Type kType>
using Bits = typename Values<kType>::Bits;
template <Type kType>
using Vector = typename Values<kType>::Vector;

// The bits of element k of a vector; k is a constant where these are used.
__device__ inline std::uint32_t element_bits(uint4 v, int k) {
  return k == 0 ? v.x : k == 1 ? v.y : k == 2 ? v.z : v.w;
}
__device__ inline std::uint16_t element_bits(uint2 v, int k) {
  return static_cast<std::uint16_t>((k < 2 ? v.x : v.y) >> (16 * (k % 2)));
}
__device__ inline std::uint8_t element_bits(std::uint32_t v, int k) { return static_cast<std::uint8_t>(v >> (8 * k)); }

template <Type kType>
__device__ float element(const Vector<kType>& v, int k) {
  return Values<kType>::get(element_bits(v, k));
}

__device__ inline void pack(uint4& v, const std::uint32_t (&b)[4]) { v = {b[0], b[1], b[2], b[3]}; }
__device__ inline void pack(uint2& v, const std::uint16_t (&b)[4]) {
  v = {b[0] | static_cast<std::uint32_t>(b[1]) << 16, b[2] | static_cast<std::uint32_t>(b[3]) << 16};
}
__device__ inline void pack(std::uint32_t& v, const std::uint8_t (&b)[4]) {
  v = b[0] | static_cast<std::uint32_t>(b[1]) << 8 | static_cast<std::uint32_t>(b[2]) << 16 |
      static_cast<std::uint32_t>(b[3]) << 24;
}

template <Type kType>
__device__ Vector<kType> vector_of(const float (&x)[4]) {
  const Bits<kType> bits[4] = {Values<kType>::put(x[0]), Values<kType>::put(x[1]), Values<kType>::put(x[2]),
                               Values<kType>::put(x[3])};
  Vector<kType> v;
  pack(v, bits);
  return v;
}

template <Type kType>
__device__ const Bits<kType>* elements(const void* base) {
  return static_cast<const Bits<kType>*>(base);
}
template <Type kType>
__device__ Bits<kType>* elements(void* base) {
  return static_cast<Bits<kType>*>(base);
}

// Elements [i, i + 4) of an array whose element i is aligned to a vector.
template <Type kType>
__device__ Vector<kType> load(const void* base, std::int64_t i) {
  return *reinterpret_cast<const Vector<kType>*>(elements<kType>(base) + i);
}
template <Type kType>
__device__ void store(void* base, std::int64_t i, const Vector<kType>& v) {
  *reinterpret_cast<Vector<kType>*>(elements<kType>(base) + i) = v;
}

}  // namespace ebb::kernels
