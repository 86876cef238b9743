// ContentMeter: the contents (hashes.hpp) of a data file's tensors from its bytes, any stretch of them at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "replay/checkpoint/manifest.hpp"

namespace ebb::replay::checkpoint {

/// Immutable, usable from several threads.
class ContentMeter {
 public:
  ContentMeter(const Manifest& manifest, std::size_t file, std::int64_t header_bytes);

  /// What bytes [at, at + size) of the file are. Both ends lie between elements.
  Contents of(std::int64_t at, std::span<const std::byte> bytes) const;

 private:
  std::vector<Piece> pieces_;
  std::vector<std::int64_t> places_;
  std::vector<std::uint64_t> keys_;
};

/// Both check sums of a block in one pass: its hash is returned, its content added to `sum`.
Hash128 hash_and_meter(const ContentMeter& meter, std::int64_t at, std::span<const std::byte> block, Contents& sum);

void add_contents(Contents& sum, const Contents& more);

}  // namespace ebb::replay::checkpoint
