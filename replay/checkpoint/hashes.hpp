// Two kinds of check sums of a checkpoint. Hash128: XXH3 (128 bits, https://xxhash.com) of bytes as they lie in a file;
// tells whether a file is what was written. Content: a sum over elements that depends on (parameter, state, element,
// bits) alone, so that two checkpoints of one state agree however ranks share it.
//
// Content. Element i of a state with key k has the 32-bit words
//   x = fmix(bits ^ (k_0 + i A)),  y = (x ^ (k_1 + i B)) C, y ^= y >> 15
// and a content is the pair (sum of x, sum of y) modulo 2^32, in one uint64. Multiplications of 32 bits are what vector
// units have, which is why it is not kernels/digest.hpp's mix of 64: that one is 6 times slower here and would be what
// a save waits for. The index enters twice, so that bits and index that collide in x do not in y.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "models/dtype.hpp"
#include "models/plan.hpp"

namespace ebb::replay::checkpoint {

struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  bool operator==(const Hash128&) const = default;
  std::string text() const;  // 32 hexadecimal digits
};
std::optional<Hash128> parse_hash(std::string_view text);
Hash128 hash_of(std::span<const std::byte> bytes);
Hash128 hash_of(std::string_view text);

/// hash_of() of bytes that come one after another: who also sums their content goes over them once, in portions that
/// stay in a core's cache.
inline constexpr std::size_t kPortion = std::size_t{1} << 17;
class HashStream {
 public:
  HashStream();
  ~HashStream();
  void add(std::span<const std::byte> bytes);
  Hash128 take();  // of all since the last

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Both sums modulo 2^32. Commutative, associative; 0 is nothing.
constexpr std::uint64_t add_content(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kLow = 0xffffffffU;
  return (((a >> 32) + (b >> 32)) << 32) | (((a & kLow) + (b & kLow)) & kLow);
}
std::uint64_t content_key(std::string_view parameter, StateBits state);
/// Of the elements first, first + 1, ... of a parameter, of `type`, which fill `data` (any alignment).
std::uint64_t content_of(std::uint64_t key, std::int64_t first, Dtype type, std::span<const std::byte> data);

}  // namespace ebb::replay::checkpoint
