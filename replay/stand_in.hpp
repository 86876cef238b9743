// Stand-ins for forward and backward: matrix products that keep the tensor cores busy for as long as the plan says.
//
// A stand-in does what consequences need (loss or gradients over its parameters, activations overwritten) and fills up
// the rest of its time with products. How many follows from times measured on the device at setup, alone, and then from
// what the ops took in the step before: a product's time depends on clocks, and those on how long the device rested
// before, so that the same products take 2 % more in a step without pauses and 2 % less in one with long ones.
// Not here: the issue of the ops themselves (issuer.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/timeline.hpp"
#include "models/units.hpp"
#include "replay/ready.hpp"

namespace ebb::replay {

class Instruments;

/// A product of size x size matrices, so many times.
struct GemmCount {
  std::int64_t size = 0;
  std::int64_t count = 0;

  bool operator==(const GemmCount&) const = default;
};
struct GemmTime {
  std::int64_t size = 0;
  Ticks time{0};
};

inline constexpr std::int64_t kLargestGemm = 4096;

/// Products that take `left` together: as many of the largest as fit, then of the next, ..., of the smallest the
/// nearest number. `times`: descending, all positive. Nothing where left <= 0. Pure.
std::vector<GemmCount> fill_time(Ticks left, std::span<const GemmTime> times);

/// What the products of an op should take, by their times at setup, when `left` took `measured` (all of the op) where
/// `planned` was wanted and `others` is not theirs. By at most a third either way. Pure.
Ticks corrected(Ticks left, Ticks planned, Ticks measured, Ticks others);

/// The part of a buffer of `bytes` that belongs to `range` of `whole` elements; consecutive ranges cover it all. Pure.
struct ByteRange {
  Bytes at{0};
  Bytes bytes{0};
};
ByteRange share_of(Bytes bytes, ElementRange range, Numel whole);

/// What a forward stand-in overwrites of its activations' `bytes`, when there are `padded` elements: its range's part,
/// a filler all of it. Pure.
ByteRange overwritten(const Stand& stand, Bytes bytes, Numel padded);

/// Where parameters and gradients lie; null where a plan has none.
struct StandInSpace {
  void* params = nullptr;
  void* grads = nullptr;
};

class StandIns {
 public:
  StandIns() = default;  // no products
  /// Measures on the current device. Writes into parameters and gradients, which must not hold anything yet, and needs
  /// `instruments` with operands of kLargestGemm. Of quantised parameters only products are measured.
  StandIns(const Program& program, std::span<const Ready> actions, const StandInSpace& space,
           const Instruments& instruments, void* stream);

  std::span<const GemmCount> products(std::uint32_t op) const;
  std::int64_t launches(std::uint32_t op) const;
  /// A step took these times (by op): the next one shall last as planned.
  void learn(const Timeline& measured);
  /// Stand-ins that must last longer than planned, if any: one clause.
  const std::string& remark() const { return remark_; }

 private:
  struct Filled {
    std::uint32_t op = 0;
    Ticks planned{0};
    Ticks others{0};  // what the op takes without products
    Ticks left{0};    // what its products take, by their times at setup
  };

  std::vector<std::vector<GemmCount>> products_;  // by op id
  std::vector<Filled> filled_;
  std::vector<GemmTime> times_;
  std::string remark_;
};

}  // namespace ebb::replay
