// Typed indices: the handles between entities of a Plan (never pointers).
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace ebb {

/// Index into one vector of the owning struct; `none()` marks "no such entity".
template <class Entity>
struct Id {
  std::uint32_t index = std::numeric_limits<std::uint32_t>::max();

  static constexpr Id none() { return {}; }
  constexpr bool valid() const { return index != std::numeric_limits<std::uint32_t>::max(); }
  constexpr auto operator<=>(const Id&) const = default;
};

using OpId = Id<struct Op>;
using BufferId = Id<struct Buffer>;
using StreamId = Id<struct Stream>;

}  // namespace ebb
