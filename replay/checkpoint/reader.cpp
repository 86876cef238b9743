// Reader: looks at a whole checkpoint first, then hands out ranges of it.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "models/errors.hpp"
#include "replay/checkpoint/directory.hpp"
#include "replay/checkpoint/file.hpp"
#include "replay/checkpoint/hash_check.hpp"
#include "replay/checkpoint/manifest.hpp"
#include "replay/checkpoint/reader_state.hpp"

namespace ebb::replay::checkpoint {

namespace fs = std::filesystem;

namespace {

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

}  // namespace

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

Reader::Reader(const std::string& path, bool hashes, int threads) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.path = checkpoint_at(path);
  const std::string file = s.path + "/" + kManifest;
  s.manifest = read_manifest(file);
  for (std::uint32_t i = 0; i < s.manifest.parameters.size(); ++i) s.index.emplace(s.manifest.parameters[i].name, i);
  s.check_names();
  s.places = places_of(s.manifest, file);
  for (std::size_t i = 0; i < s.manifest.files.size(); ++i) s.stamps.push_back(check_file(s.path, s.manifest, i));
  if (const auto step = step_of_name(s.path); step && *step != s.manifest.what.place.steps)
    throw InputError({file},
                     fmt::format("it is of step {}, and its directory is called {}", s.manifest.what.place.steps,
                                 fs::path(s.path).filename().string()),
                     "a checkpoint keeps its name: was it renamed or copied over another one?");
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

}  // namespace ebb::replay::checkpoint
