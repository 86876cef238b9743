// commit(): the parts of all ranks become one checkpoint.
#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <set>
#include <unordered_map>

#include "models/errors.hpp"
#include "replay/checkpoint/content_meter.hpp"
#include "replay/checkpoint/directory.hpp"
#include "replay/checkpoint/file.hpp"
#include "replay/checkpoint/manifest.hpp"
#include "replay/checkpoint/unfinished.hpp"

namespace ebb::replay::checkpoint {

namespace fs = std::filesystem;

namespace {

Manifest read_part(const std::string& partial, std::int64_t rank) {
  const std::string path = fmt::format("{}/rank-{:05d}.json", partial, rank);
  std::error_code error;
  if (!fs::exists(path, error))
    throw IoError(
        fmt::format("{}: rank {} has not finished its part of the checkpoint; is the directory on storage "
                    "that all ranks see?",
                    path, rank));
  return read_manifest(path);
}

/// Joins `part` to `all`: parameters by name, one file more.
void join(Manifest& all, Manifest part, std::unordered_map<std::string, std::uint32_t>& known,
          const std::string& path) {
  std::vector<std::uint32_t> index;
  for (Parameter& parameter : part.parameters) {
    const auto [found, is_new] = known.try_emplace(parameter.name, static_cast<std::uint32_t>(all.parameters.size()));
    if (!is_new && all.parameters[found->second].shape != parameter.shape)
      throw InputError({path}, fmt::format("\"{}\" has another shape than in the parts before", parameter.name),
                       "parameters that differ need names that differ");
    index.push_back(found->second);
    if (is_new) all.parameters.push_back(std::move(parameter));
  }
  for (Piece& piece : part.files[0].pieces) piece.parameter = index[piece.parameter];
  all.files.push_back(std::move(part.files[0]));
  add_contents(all.contents, part.contents);
}

Manifest join_parts(const std::string& partial, const Description& what) {
  Manifest all{.what = what, .parameters = {}, .files = {}, .contents = {}};
  std::unordered_map<std::string, std::uint32_t> known;
  for (std::int64_t rank = 0; rank < what.ranks; ++rank) {
    Manifest part = read_part(partial, rank);
    const std::string path = partial + "/" + data_file_name(rank);
    if (identity(part.what) != identity(what) || part.files.size() != 1 || part.files[0].name != data_file_name(rank))
      throw InputError({path}, "it belongs to another save", "remove the directory and save again");
    std::error_code error;
    const auto bytes = fs::file_size(path, error);
    if (error) throw_io_error(path, "looking at it", error.value());
    if (static_cast<std::int64_t>(bytes) != part.files[0].bytes.value)
      throw IoError(fmt::format("{}: it has {} bytes where {} were written", path, bytes, part.files[0].bytes.value));
    join(all, std::move(part), known, path);
  }
  places_of(all, partial);  // every parameter whole
  return all;
}

/// All that is not of this checkpoint: parts, and what a killed save of more ranks left.
void remove_others(const std::string& partial, const Manifest& manifest) {
  std::set<std::string> keep = {kManifest};
  for (const DataFile& file : manifest.files) keep.insert(file.name);
  std::vector<fs::path> others;
  std::error_code error;
  for (fs::directory_iterator it(partial, error), end; !error && it != end; it.increment(error))
    if (!keep.contains(it->path().filename().string())) others.push_back(it->path());
  for (const fs::path& path : others) {
    fs::remove_all(path, error);
    if (error) throw_io_error(path.string(), "removing it", error.value());
  }
}

}  // namespace

std::string commit(const std::string& directory, const Description& what, std::size_t keep) {
  const std::int64_t step = what.place.steps;
  const std::string partial = partial_path(directory, step);
  const Manifest manifest = join_parts(partial, what);
  const std::string path = partial + "/" + kManifest;
  try {
    const RemovalWaits hold = hold_removal();
    write_small_file(path, manifest_text(manifest));
    remove_others(partial, manifest);
    sync_directory(partial);
    forget_unfinished(partial);
    publish(directory, step);
  } catch (...) {
    std::error_code ignored;
    fs::remove(path, ignored);  // the rest is its writers'
    throw;
  }
  remove_old(directory, step, keep);
  return step_path(directory, step);
}

}  // namespace ebb::replay::checkpoint
