// Reader: looks at a whole checkpoint first, then hands out ranges of it.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <thread>
#include <unordered_map>

#include "kernels/types.hpp"
#include "models/errors.hpp"
#include "models/text_file.hpp"
#include "replay/checkpoint/directory.hpp"
#include "replay/checkpoint/file.hpp"
#include "replay/checkpoint/hash_check.hpp"
#include "replay/checkpoint/manifest.hpp"

namespace ebb::replay::checkpoint {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kMostManifestBytes = std::int64_t{1} << 31;
constexpr const char* kOther = "take another checkpoint";

/// `path` itself, or the newest checkpoint in it.
std::string checkpoint_at(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw InputError({path}, "there is no such checkpoint");
  if (!fs::is_directory(status)) throw InputError({path}, "this is no checkpoint", "a checkpoint is a directory");
  if (path.ends_with(".partial"))
    throw InputError({path}, "this save never ended", "take a directory without .partial, or the one above");
  if (fs::exists(path + "/" + kManifest, error)) return path;
  const std::vector<std::string> all = list(path);
  if (all.empty())
    throw InputError({path}, "there is no checkpoint in this directory",
                     fmt::format("a checkpoint has a {}, a directory of checkpoints step-* in it", kManifest));
  return all.back();
}

std::string read_beginning(const File& file, std::int64_t bytes) {
  std::string text(static_cast<std::size_t>(bytes), '\0');
  text.resize(static_cast<std::size_t>(file.read(0, std::as_writable_bytes(std::span(text)))));
  return text;
}

/// Size and header are what the manifest says. The file as it is now.
File::Stamp check_file(const std::string& directory, const Manifest& manifest, std::size_t i) {
  const DataFile& data = manifest.files[i];
  const std::string path = directory + "/" + data.name;
  std::error_code error;
  if (!fs::exists(path, error)) throw InputError({path}, "this file of the checkpoint is missing", kOther);
  if (!fs::is_regular_file(path, error)) throw InputError({path}, "this is no file", kOther);
  const File file = File::open(path, false);
  const File::Stamp stamp = file.stamp();
  if (stamp.bytes != data.bytes.value)
    throw InputError(
        {path}, fmt::format("it has {} bytes, not {}", stamp.bytes, data.bytes.value),
        stamp.bytes < data.bytes.value ? "it is truncated" : "something was appended, or it is of another save");
  const std::string first_8 = read_beginning(file, 8);
  const std::string text = read_beginning(file, header_bytes(first_8, stamp.bytes, path));
  if (static_cast<std::int64_t>(text.size()) != header_bytes(first_8, stamp.bytes, path))
    throw InputError({path}, "it ends within its header", "it is truncated");
  const Header header = parse_header(text, stamp.bytes, path);
  const Header expected = header_of(manifest, i);
  if (header != expected || text != header_text(expected)) {
    const auto save = std::find_if(header.metadata.begin(), header.metadata.end(),
                                   [](const auto& entry) { return entry.first == "save"; });
    const bool foreign = save == header.metadata.end() || save->second != identity(manifest.what).text();
    throw InputError(
        {path}, foreign ? "it belongs to another save than the manifest" : "its header is not what the manifest says",
        kOther);
  }
  return stamp;
}

constexpr std::size_t kLarge = std::size_t{1} << 20;  // from here on past the page cache

Dtype type_of(const Precision& precision, StateBits state) {
  switch (state) {
    case kExpAvg:
      return precision.exp_avg;
    case kExpAvgSq:
      return precision.exp_avg_sq;
    case kMaster:
      return precision.master;
    default:
      return precision.params;
  }
}

}  // namespace

struct Reader::State {
  std::string path;
  Manifest manifest;
  std::vector<File::Stamp> stamps;                                          // by file
  std::vector<std::array<std::vector<Found>, kSavedStates.size()>> places;  // by parameter
  std::unordered_map<std::string, std::uint32_t> index;                     // by name

  std::string path_of(std::size_t file) const { return path + "/" + manifest.files[file].name; }
  void check_names() const;
  const std::vector<Found>& pieces(const std::string& parameter, StateBits state) const;
  void read_piece(const Found& found, std::int64_t at, std::span<std::byte> to) const;
};

void Reader::State::check_names() const {
  const std::string file = path + "/" + kManifest;
  if (static_cast<std::int64_t>(manifest.files.size()) != manifest.what.ranks)
    throw InputError({file}, fmt::format("{} files for {} ranks", manifest.files.size(), manifest.what.ranks), kOther);
  for (std::size_t i = 0; i < manifest.files.size(); ++i)
    if (manifest.files[i].name != data_file_name(static_cast<std::int64_t>(i)))
      throw InputError({file}, fmt::format("file {} should be {}", i, data_file_name(static_cast<std::int64_t>(i))),
                       kOther);
  if (index.size() != manifest.parameters.size()) throw InputError({file}, "a parameter stands there twice", kOther);
}

const std::vector<Found>& Reader::State::pieces(const std::string& parameter, StateBits state) const {
  const auto found = index.find(parameter);
  if (found == index.end())
    throw InputError({path}, fmt::format("it has no parameter \"{}\"", parameter), "it is of another model");
  const std::vector<Found>& pieces = places[found->second][index_of(state)];
  if (pieces.empty())
    throw InputError({path}, fmt::format("it has no {} of \"{}\"", name_of_state(state), parameter),
                     "it was saved before the first step, or by a job that keeps none");
  return pieces;
}

void Reader::State::read_piece(const Found& found, std::int64_t at, std::span<std::byte> to) const {
  const std::string file_path = path_of(found.file);
  const bool large = to.size() >= kLarge;
  const File file = File::open(file_path, large);
  if (file.stamp() != stamps[found.file])
    throw InputError({file_path}, "it has changed since it was checked", "is another save writing there?");
  const auto need = [&](std::int64_t got, std::int64_t wanted) {
    if (got < wanted) throw IoError(file_path + ": it ends before its data does");
  };
  if (!large) return need(file.read(at, to), static_cast<std::int64_t>(to.size()));
  const AlignedBytes buffer(kLarge * 8);
  for (std::size_t done = 0; done < to.size();) {
    const std::int64_t begin = (at + static_cast<std::int64_t>(done)) / kAlignment * kAlignment;
    const auto skip = static_cast<std::size_t>(at + static_cast<std::int64_t>(done) - begin);
    const std::size_t wanted = std::min(to.size() - done, kLarge * 8 - skip);
    const std::int64_t padded = round_up(static_cast<std::int64_t>(skip + wanted), kAlignment);
    need(file.read(begin, {buffer.data(), static_cast<std::size_t>(padded)}), static_cast<std::int64_t>(skip + wanted));
    std::memcpy(to.data() + done, buffer.data() + skip, wanted);
    done += wanted;
  }
}

Reader::Reader(const std::string& path, bool hashes, int threads) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.path = checkpoint_at(path);
  const std::string file = s.path + "/" + kManifest;
  s.manifest = parse_manifest(read_text_file(file, kMostManifestBytes), file);
  for (std::uint32_t i = 0; i < s.manifest.parameters.size(); ++i) s.index.emplace(s.manifest.parameters[i].name, i);
  s.check_names();
  s.places = places_of(s.manifest, file);
  for (std::size_t i = 0; i < s.manifest.files.size(); ++i) s.stamps.push_back(check_file(s.path, s.manifest, i));
  constexpr int kMostThreads = 16;
  if (threads <= 0) threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostThreads);
  if (hashes) check_hashes(s.path, s.manifest, threads);
}

Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;

const std::string& Reader::path() const { return state_->path; }
const Description& Reader::description() const { return state_->manifest.what; }
const std::vector<Parameter>& Reader::parameters() const { return state_->manifest.parameters; }
std::uint64_t Reader::content(StateBits state) const { return state_->manifest.contents[index_of(state)]; }

std::optional<Dtype> Reader::type(StateBits state) const {
  for (const auto& of_parameter : state_->places)
    if (!of_parameter[index_of(state)].empty()) return of_parameter[index_of(state)][0].piece.type;
  return std::nullopt;
}

Bytes Reader::bytes() const {
  Bytes all{0};
  for (const DataFile& file : state_->manifest.files) all += file.bytes;
  return all;
}

void Reader::require(std::span<const Parameter> parameters, std::uint8_t states, const Precision& precision) const {
  for (const Parameter& parameter : parameters) {
    const auto found = state_->index.find(parameter.name);
    if (found == state_->index.end())
      throw InputError({state_->path}, fmt::format("it has no parameter \"{}\"", parameter.name),
                       "it is of another model");
    const Parameter& saved = state_->manifest.parameters[found->second];
    if (saved.shape != parameter.shape)
      throw InputError({state_->path},
                       fmt::format("\"{}\" has the shape [{}], not [{}]", parameter.name, fmt::join(saved.shape, ", "),
                                   fmt::join(parameter.shape, ", ")),
                       "it is of another model");
    for (const StateBits state : kSavedStates) {
      if ((states & state) == 0 || numel_of(parameter) == 0) continue;
      const Dtype type = state_->pieces(parameter.name, state)[0].piece.type;
      const Dtype wanted = type_of(precision, state);
      if (type != wanted)
        throw InputError({state_->path},
                         fmt::format("{} of \"{}\" is saved in {}, not in {}", name_of_state(state), parameter.name,
                                     ebb::name_of(type), ebb::name_of(wanted)),
                         "it is of a job with another precision");
    }
  }
}

void Reader::read(const std::string& parameter, StateBits state, Numel offset, Numel numel, Dtype type,
                  std::byte* data) const {
  if (numel.value == 0) return;
  const std::vector<Found>& pieces = state_->pieces(parameter, state);
  if (pieces[0].piece.type != type)
    throw InputError({state_->path},
                     fmt::format("{} of \"{}\" is saved in {}, not in {}", name_of_state(state), parameter,
                                 ebb::name_of(pieces[0].piece.type), ebb::name_of(type)),
                     "it is of a job with another precision");
  const std::int64_t all = (pieces.back().piece.offset + pieces.back().piece.numel).value;
  if (offset.value < 0 || numel.value < 0 || numel.value > all - offset.value)
    throw InputError(
        {state_->path},
        fmt::format("\"{}\" has {} elements; asked for are {} from {} on", parameter, all, numel.value, offset.value),
        "it is of another model");
  const std::int64_t size = size_of(type);
  auto found = std::upper_bound(pieces.begin(), pieces.end(), offset,
                                [](Numel at, const Found& f) { return at < f.piece.offset; });
  for (--found; numel.value > 0; ++found) {
    const Numel within = offset - found->piece.offset;
    const Numel count = std::min(numel, found->piece.numel - within);
    const auto bytes = static_cast<std::size_t>(count.value * size);
    state_->read_piece(*found, found->at + within.value * size, {data, bytes});
    data += bytes;
    offset += count;
    numel -= count;
  }
}

void Reader::read_params_as_fp32(const std::string& parameter, Numel offset, Numel numel, float* data) const {
  if (numel.value == 0) return;
  const Dtype type = state_->pieces(parameter, kParams)[0].piece.type;
  if (type == Dtype::fp32) return read(parameter, kParams, offset, numel, type, reinterpret_cast<std::byte*>(data));
  if (type == Dtype::fp8)
    throw InputError({state_->path}, fmt::format("param of \"{}\" is saved in fp8 without scales", parameter), kOther);
  constexpr std::int64_t kAtOnce = std::int64_t{1} << 22;
  std::vector<std::uint16_t> bits(static_cast<std::size_t>(std::min(numel.value, kAtOnce)));
  for (std::int64_t done = 0; done < numel.value;) {
    const std::int64_t count = std::min(numel.value - done, kAtOnce);
    read(parameter, kParams, offset + Numel{done}, {count}, type, reinterpret_cast<std::byte*>(bits.data()));
    for (std::int64_t i = 0; i < count; ++i)
      data[done + i] = type == Dtype::bf16 ? kernels::fp32_from_bf16(bits[static_cast<std::size_t>(i)])
                                           : kernels::fp32_from_fp16(bits[static_cast<std::size_t>(i)]);
    done += count;
  }
}

}  // namespace ebb::replay::checkpoint
