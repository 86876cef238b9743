// RankWriter: one rank's data file and its part of the manifest.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <numeric>

#include "models/errors.hpp"
#include "replay/checkpoint/block_writer.hpp"
#include "replay/checkpoint/content_meter.hpp"
#include "replay/checkpoint/directory.hpp"
#include "replay/checkpoint/manifest.hpp"
#include "replay/checkpoint/unfinished.hpp"

namespace ebb::replay::checkpoint {

namespace {

/// Places in the file of the caller's pieces: larger types first, else as given. Pieces without elements have none.
std::vector<std::size_t> file_order(const std::vector<Piece>& pieces) {
  std::vector<std::size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t i) { return pieces[i].numel.value == 0; });
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return size_of(pieces[a].type) > size_of(pieces[b].type); });
  return order;
}

void require_possible(const std::vector<Parameter>& parameters, const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) {
    EBB_ASSERT(piece.parameter < parameters.size());
    EBB_ASSERT(piece.offset.value >= 0 && piece.numel.value >= 0);
    EBB_ASSERT((piece.offset + piece.numel).value <= numel_of(parameters[piece.parameter]));
  }
}

}  // namespace

struct RankWriter::State {
  using Clock = std::chrono::steady_clock;

  Manifest part;                     // of this file alone
  std::vector<Piece> pieces;         // as the caller counts them
  std::vector<std::int64_t> begins;  // of them, in the file
  std::optional<ContentMeter> meter;
  std::string directory;  // .partial
  std::string part_path;
  std::optional<Unfinished> unfinished;
  File file;
  std::mutex mutex;  // of part.contents
  std::unique_ptr<BlockWriter> blocks;
  std::optional<Clock::time_point> first_write;
  bool finished = false;

  ~State();
  DataFile& data() { return part.files[0]; }
  std::string header() const { return header_text(header_of(part, 0)); }
  void lay_out();
};

/// What did not become part of a checkpoint goes, also when the constructor of the writer fails: a full disk is not to
/// stay full. After commit() the files have other names.
RankWriter::State::~State() {
  blocks.reset();
  if (!unfinished) return;
  std::error_code ignored;
  if (!file.path().empty() && file.is_there()) {
    std::filesystem::remove(file.path(), ignored);
    std::filesystem::remove(part_path, ignored);
  }
  ::rmdir(directory.c_str());  // by the last: it is empty then
}

/// Where everything lies.
void RankWriter::State::lay_out() {
  const std::vector<std::size_t> order = file_order(pieces);
  for (const std::size_t i : order) data().pieces.push_back(pieces[i]);
  const auto header_size = static_cast<std::int64_t>(header().size());
  if (header_size - 8 > kMostHeaderBytes)
    throw InputError({directory}, fmt::format("a rank's {} pieces make a header that no reader takes", pieces.size()),
                     "use more ranks");
  const std::vector<std::int64_t> places = piece_places(data(), header_size);
  begins.assign(pieces.size(), 0);
  for (std::size_t k = 0; k < order.size(); ++k) begins[order[k]] = places[k];
  meter.emplace(part, 0, header_size);
  data().bytes.value = places.back();
}

RankWriter::RankWriter(const std::string& directory, const Description& what, std::int64_t rank,
                       std::vector<Parameter> parameters, std::vector<Piece> pieces, WriteOptions options)
    : state_(std::make_unique<State>()) {
  EBB_ASSERT(rank >= 0 && rank < what.ranks);
  require_possible(parameters, pieces);
  State& s = *state_;
  s.directory = partial_path(directory, what.place.steps);
  s.part_path = fmt::format("{}/rank-{:05d}.json", s.directory, rank);
  s.part = {.what = what, .parameters = std::move(parameters), .files = {{}}, .contents = {}};
  s.data().name = data_file_name(rank);
  s.data().block = options.block;
  s.pieces = std::move(pieces);
  s.lay_out();
  make_directories(directory);
  if (rank == 0) remove_leftovers(directory, what.place.steps);
  const std::string path = s.directory + "/" + s.data().name;
  {
    const RemovalWaits hold = hold_removal();
    s.unfinished.emplace(s.directory);
    make_own_directory(s.directory);
    s.file = File::create(path, options.direct);
    s.unfinished->own(what.ranks, {path, s.part_path});  // nobody else's: it is locked
  }
  std::error_code ignored;
  std::filesystem::remove(s.part_path, ignored);  // of a save that died
  s.file.reserve(round_up(s.data().bytes.value, kAlignment));
  s.blocks =
      std::make_unique<BlockWriter>(s.file, s.data().bytes, options.block, options.threads > 0 ? options.threads : 2,
                                    [&s](std::int64_t at, std::span<const std::byte> block) {
                                      Contents contents{};
                                      const Hash128 hash = hash_and_meter(*s.meter, at, block, contents);
                                      const std::lock_guard lock(s.mutex);
                                      add_contents(s.part.contents, contents);
                                      return hash;
                                    });
}

RankWriter::~RankWriter() = default;
RankWriter::RankWriter(RankWriter&&) noexcept = default;

void RankWriter::write(std::size_t piece, Numel first, Numel numel, const std::byte* data) {
  State& s = *state_;
  EBB_ASSERT(!s.finished && piece < s.pieces.size() && first.value >= 0 && numel.value >= 0);
  EBB_ASSERT((first + numel).value <= s.pieces[piece].numel.value);
  if (!s.first_write) s.first_write = State::Clock::now();
  const std::int64_t size = size_of(s.pieces[piece].type);
  s.blocks->put(s.begins[piece] + first.value * size, {data, static_cast<std::size_t>(numel.value * size)});
}

Written RankWriter::finish() {
  State& s = *state_;
  EBB_ASSERT(!s.finished);
  if (!s.first_write) s.first_write = State::Clock::now();
  const std::string header = s.header();
  s.blocks->put(0, std::as_bytes(std::span(header)));
  s.data().blocks = s.blocks->finish();
  s.blocks.reset();
  s.file.truncate(s.data().bytes.value);
  s.file.sync();
  const RemovalWaits hold = hold_removal();
  write_small_file(s.part_path, manifest_text(s.part));
  s.finished = true;
  s.unfinished->complete();
  return {s.data().bytes, std::chrono::duration<double>(State::Clock::now() - *s.first_write).count()};
}

}  // namespace ebb::replay::checkpoint
