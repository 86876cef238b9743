#include "replay/checkpoint_end.hpp"

#include <chrono>

#include "models/errors.hpp"

namespace ebb::replay {

namespace {

std::byte* of(const CheckpointPiece& piece, const HostParts& host) {
  return (piece.host == Memory::pinned ? host.pinned : host.pageable) + piece.host_at.value;
}

}  // namespace

template <class Do>
void CheckpointEnd::timed(Do&& act) {
  const auto begin = std::chrono::steady_clock::now();
  act();
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void CheckpointEnd::begin_save(const Program& save, const std::string& directory, const checkpoint::Description& what) {
  program_ = &save;
  bytes_ = {0};
  seconds_ = 0;
  pieces_.emplace(save);
  timed(
      [&] { writer_.emplace(directory, what, save.plan->rank, checkpoint_parameters(*save.plan), pieces_->pieces()); });
}

void CheckpointEnd::store(const Store& store, const HostParts& host) {
  EBB_ASSERT(writer_.has_value());
  timed([&] {
    for (const CheckpointPiece& piece : store.pieces)
      writer_->write(pieces_->index_of(piece), piece.first, piece.numel, of(piece, host));
  });
}

void CheckpointEnd::finish_save() {
  EBB_ASSERT(writer_.has_value());
  timed([&] { bytes_ = writer_->finish().bytes; });
}

void CheckpointEnd::begin_load(const Program& load, const checkpoint::Reader& reader) {
  require_for(reader, load);
  program_ = &load;
  reader_ = &reader;
  bytes_ = {0};
  seconds_ = 0;
}

void CheckpointEnd::fetch(const Fetch& fetch, const HostParts& host) {
  EBB_ASSERT(reader_ != nullptr);
  timed([&] {
    for (const CheckpointPiece& piece : fetch.pieces) {
      fetch_piece(*reader_, *program_->plan, piece, of(piece, host));
      bytes_ += bytes_of(piece.numel, size_of(piece.type));
    }
  });
}

}  // namespace ebb::replay
