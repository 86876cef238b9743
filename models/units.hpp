// Strong types for the quantities Ebb computes with.
//
// Why: a byte count and an element count are both int64 and differ by a factor of 4 or 12; mixing
// them is the classic mistake of memory estimators. Raw numbers exist only at the YAML, JSON and
// CUDA edge. Not here: parsing and printing (see text.hpp).
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>

namespace ebb {

/// A number with a unit: same-unit sums and comparisons, scaling by a plain number, nothing else.
template <class Unit, class Rep>
struct Quantity {
  Rep value{};

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity other) {
    value += other.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value -= other.value;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend constexpr Quantity operator*(Quantity a, Rep k) { return {a.value * k}; }
  friend constexpr Quantity operator*(Rep k, Quantity a) { return {a.value * k}; }
};

using Bytes = Quantity<struct BytesUnit, std::int64_t>;
/// A number of tensor elements.
using Numel = Quantity<struct NumelUnit, std::int64_t>;
/// Simulated time in picoseconds: exact integers, 106 days of range.
using Ticks = Quantity<struct TicksUnit, std::int64_t>;
using BytesPerSecond = Quantity<struct BytesPerSecondUnit, double>;
using Flops = Quantity<struct FlopsUnit, double>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondUnit, double>;
/// Durations outside the simulator (inputs, answers). Inside it, time is Ticks.
using Seconds = Quantity<struct SecondsUnit, double>;

inline constexpr std::int64_t kTicksPerSecond = 1'000'000'000'000;

/// Nearest tick; what is beyond 46 days, which no plan may hold (sim/op_cost.hpp), is 46 days.
inline Ticks to_ticks(Seconds t) {
  constexpr std::int64_t kMostSeconds = 4'000'000;
  if (!(t.value < static_cast<double>(kMostSeconds))) return {kMostSeconds * kTicksPerSecond};
  return {static_cast<std::int64_t>(std::llround(t.value * static_cast<double>(kTicksPerSecond)))};
}
inline constexpr Seconds to_seconds(Ticks t) {
  return {static_cast<double>(t.value) / static_cast<double>(kTicksPerSecond)};
}
/// Time to move `bytes` at `rate`. Precondition: rate > 0.
inline constexpr Seconds operator/(Bytes bytes, BytesPerSecond rate) {
  return {static_cast<double>(bytes.value) / rate.value};
}
inline constexpr Seconds operator/(Flops work, FlopsPerSecond rate) { return {work.value / rate.value}; }

/// Bytes of `n` elements of `bytes_per_element` each.
inline constexpr Bytes bytes_of(Numel n, std::int64_t bytes_per_element) { return {n.value * bytes_per_element}; }

inline constexpr Bytes operator""_KiB(unsigned long long n) { return {static_cast<std::int64_t>(n) << 10}; }
inline constexpr Bytes operator""_MiB(unsigned long long n) { return {static_cast<std::int64_t>(n) << 20}; }
inline constexpr Bytes operator""_GiB(unsigned long long n) { return {static_cast<std::int64_t>(n) << 30}; }

/// Smallest multiple of `step` that is at least `value`. Preconditions: value >= 0, step > 0.
inline constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}
inline constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace ebb
