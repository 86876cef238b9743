// Accesses: which data an op of a Plan reads and writes. What verify() compares.
//
// Data has two faces. Content is what a value means: state s of element e on the device, or its pinned copy on the
// host. Storage is where it lies: a buffer, whose bytes serve other elements once a slot is reused. Both must be
// ordered. Not here: the order itself (order.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "models/plan.hpp"

namespace ebb {

/// How elements are counted: packed owned elements, or padded elements of the whole parameter and gradient buffers
/// (forward, backward and collectives). Ranges of different counts are taken to overlap.
enum class Counting : std::uint8_t { owned, padded };
enum class Side : std::uint8_t { device, host };

struct ContentAccess {
  Side side = Side::device;
  std::uint8_t states = 0;  // StateBits
  bool write = false;
};

/// What one op touches besides the life of its buffer.
struct Accesses {
  std::array<ContentAccess, 3> content;
  std::size_t content_count = 0;
  Counting counting = Counting::owned;
  bool storage = false;             // it uses op.buffer ...
  bool storage_write = false;       // ... and changes it
  bool host_storage_write = false;  // it changes op.host_buffer, where it has one (and else reads it)

  std::span<const ContentAccess> contents() const { return {content.data(), content_count}; }
};

Accesses accesses_of(const Op& op);

}  // namespace ebb
