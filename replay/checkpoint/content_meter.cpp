#include "replay/checkpoint/content_meter.hpp"

#include <algorithm>

namespace ebb::replay::checkpoint {

ContentMeter::ContentMeter(const Manifest& manifest, std::size_t file, std::int64_t header_bytes)
    : pieces_(manifest.files[file].pieces), places_(piece_places(manifest.files[file], header_bytes)) {
  for (const Piece& piece : pieces_)
    keys_.push_back(content_key(manifest.parameters[piece.parameter].name, piece.state));
}

Contents ContentMeter::of(std::int64_t at, std::span<const std::byte> bytes) const {
  const std::int64_t end = at + static_cast<std::int64_t>(bytes.size());
  Contents contents{};
  const auto next = std::upper_bound(places_.begin(), places_.end(), at);
  for (auto k = static_cast<std::size_t>(std::max<std::ptrdiff_t>(next - places_.begin() - 1, 0));
       k < pieces_.size() && places_[k] < end; ++k) {
    const Piece& piece = pieces_[k];
    const std::int64_t from = std::max(at, places_[k]);
    const std::int64_t to = std::min(end, places_[k + 1]);
    if (from >= to) continue;
    const std::int64_t first = piece.offset.value + (from - places_[k]) / size_of(piece.type);
    const auto part = bytes.subspan(static_cast<std::size_t>(from - at), static_cast<std::size_t>(to - from));
    std::uint64_t& sum = contents[index_of(piece.state)];
    sum = add_content(sum, content_of(keys_[k], first, piece.type, part));
  }
  return contents;
}

Hash128 hash_and_meter(const ContentMeter& meter, std::int64_t at, std::span<const std::byte> block, Contents& sum) {
  HashStream hash;
  for (std::size_t done = 0; done < block.size(); done += kPortion) {
    const auto portion = block.subspan(done, std::min(kPortion, block.size() - done));
    hash.add(portion);
    add_contents(sum, meter.of(at + static_cast<std::int64_t>(done), portion));
  }
  return hash.take();
}

void add_contents(Contents& sum, const Contents& more) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = add_content(sum[i], more[i]);
}

}  // namespace ebb::replay::checkpoint
