#include "replay/checkpoint/hashes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "kernels/digest.hpp"

// The one translation unit that includes xxHash. Its own code does not pass our warnings.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wpedantic"
#define XXH_INLINE_ALL
#include <xxhash.h>
#pragma GCC diagnostic pop

// One clone for each vector width, chosen when the program starts. All of them are integer arithmetic: the same bits.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define EBB_VECTOR_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#define EBB_INLINE inline __attribute__((always_inline))
#else
#define EBB_VECTOR_CLONES
#define EBB_INLINE inline
#endif

namespace ebb::replay::checkpoint {

namespace {

// Odd constants without structure: those of MurmurHash3's finalizer (Appleby, public domain) and of xxHash's 32 bits.
template <class Element>
EBB_INLINE std::uint64_t sum_of(const Element* data, std::uint32_t numel, std::uint32_t key_x, std::uint32_t key_y) {
  std::uint32_t sum_x = 0;
  std::uint32_t sum_y = 0;
  for (std::uint32_t i = 0; i < numel; ++i) {
    std::uint32_t x = static_cast<std::uint32_t>(data[i]) ^ (key_x + i * 0x9e3779b1U);
    x *= 0x85ebca6bU;
    x ^= x >> 15;
    x *= 0xc2b2ae35U;
    x ^= x >> 16;
    std::uint32_t y = (x ^ (key_y + i * 0x27d4eb2fU)) * 0x165667b1U;
    y ^= y >> 15;
    sum_x += x;
    sum_y += y;
  }
  return (static_cast<std::uint64_t>(sum_y) << 32) | sum_x;
}

EBB_VECTOR_CLONES
std::uint64_t sum_32(const std::uint32_t* data, std::uint32_t numel, std::uint32_t key_x, std::uint32_t key_y) {
  return sum_of(data, numel, key_x, key_y);
}
EBB_VECTOR_CLONES
std::uint64_t sum_16(const std::uint16_t* data, std::uint32_t numel, std::uint32_t key_x, std::uint32_t key_y) {
  return sum_of(data, numel, key_x, key_y);
}
EBB_VECTOR_CLONES
std::uint64_t sum_8(const std::uint8_t* data, std::uint32_t numel, std::uint32_t key_x, std::uint32_t key_y) {
  return sum_of(data, numel, key_x, key_y);
}

/// Elements [first, first + numel), none of which crosses a multiple of 2^32. `data` aligned to an element.
std::uint64_t sum_within(std::uint64_t key, std::uint64_t first, Dtype type, const std::byte* data,
                         std::uint32_t numel) {
  const std::uint64_t high_key = kernels::mix64(key + (first >> 32) * kernels::kDigestStride);
  const auto low = static_cast<std::uint32_t>(first);
  const std::uint32_t key_x = static_cast<std::uint32_t>(high_key) + low * 0x9e3779b1U;
  const std::uint32_t key_y = static_cast<std::uint32_t>(high_key >> 32) + low * 0x27d4eb2fU;
  switch (size_of(type)) {
    case 4:
      return sum_32(reinterpret_cast<const std::uint32_t*>(data), numel, key_x, key_y);
    case 2:
      return sum_16(reinterpret_cast<const std::uint16_t*>(data), numel, key_x, key_y);
    default:
      return sum_8(reinterpret_cast<const std::uint8_t*>(data), numel, key_x, key_y);
  }
}

}  // namespace

std::string Hash128::text() const { return fmt::format("{:016x}{:016x}", high, low); }

std::optional<Hash128> parse_hash(std::string_view text) {
  const auto digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (text.size() != 32 || !std::all_of(text.begin(), text.end(), digit)) return std::nullopt;
  Hash128 hash;
  std::from_chars(text.data(), text.data() + 16, hash.high, 16);
  std::from_chars(text.data() + 16, text.data() + 32, hash.low, 16);
  return hash;
}

Hash128 hash_of(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

Hash128 hash_of(std::string_view text) { return hash_of(std::as_bytes(std::span(text))); }

struct HashStream::State {
  XXH3_state_t state;
};
HashStream::HashStream() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->state); }
HashStream::~HashStream() = default;
void HashStream::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state_->state, bytes.data(), bytes.size());
}
Hash128 HashStream::take() {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->state);
  XXH3_128bits_reset(&state_->state);
  return {hash.high64, hash.low64};
}

std::uint64_t content_key(std::string_view parameter, StateBits state) {
  return kernels::mix64(hash_of(parameter).low + static_cast<std::uint64_t>(state) * kernels::kDigestStride);
}

std::uint64_t content_of(std::uint64_t key, std::int64_t first, Dtype type, std::span<const std::byte> data) {
  constexpr std::int64_t kStretch = std::int64_t{1} << 14;  // elements; divides 2^32
  alignas(64) std::byte aligned[kStretch * 4];
  const std::int64_t size = size_of(type);
  const bool straight = reinterpret_cast<std::uintptr_t>(data.data()) % static_cast<std::uintptr_t>(size) == 0;
  std::uint64_t content = 0;
  for (std::int64_t at = 0, all = static_cast<std::int64_t>(data.size()) / size; at < all;) {
    const std::int64_t numel = std::min(all - at, kStretch - (first + at) % kStretch);
    const std::byte* from = data.data() + at * size;
    if (!straight) from = static_cast<std::byte*>(std::memcpy(aligned, from, static_cast<std::size_t>(numel * size)));
    content = add_content(content, sum_within(key, static_cast<std::uint64_t>(first + at), type, from,
                                              static_cast<std::uint32_t>(numel)));
    at += numel;
  }
  return content;
}

}  // namespace ebb::replay::checkpoint
