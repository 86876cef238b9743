// Random: what property tests draw, reproducibly.
#pragma once

#include <cstdint>
#include <random>

namespace ebb::test {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  /// A whole number in [low, high].
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  double real(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine_); }
  /// True once in `in` times.
  bool chance(int in) { return pick(1, in) == 1; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace ebb::test
