// InjectedValue: the inf or nan that a run puts into one gradient element of a rank (training.hpp), behind the last
// backward op that writes it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "replay/cuda.hpp"
#include "replay/ready.hpp"

namespace ebb::replay {

class InjectedValue {
 public:
  InjectedValue() = default;  // never any
  InjectedValue(const Program& program, std::span<const Ready> actions);

  /// Of the step that begins.
  void set(std::optional<float> value);
  /// Whether it comes behind `op`.
  bool behind(std::uint32_t op) const { return value_ && op == after_; }
  /// Its bytes in the gradients, and where they lie on the host meanwhile.
  Bytes at() const { return at_; }
  Bytes bytes() const { return bytes_; }
  const void* host() const { return bits_.host(); }

 private:
  std::uint32_t after_ = OpId::none().index;
  Bytes at_{0};
  Bytes bytes_{4};
  PinnedBytes bits_;
  std::optional<float> value_;
};

}  // namespace ebb::replay
