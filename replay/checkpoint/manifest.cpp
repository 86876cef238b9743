#include "replay/checkpoint/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "models/errors.hpp"

namespace ebb::replay::checkpoint {

namespace {

constexpr std::array<std::string_view, kSavedStates.size()> kStateNames = {"exp_avg", "exp_avg_sq", "master", "param"};

/// That `pieces`, ascending, are [0, numel) once, in one type.
void require_whole(const std::vector<Found>& pieces, const Parameter& parameter, const Manifest& manifest,
                   const std::string& file) {
  const std::string_view state = name_of_state(pieces.empty() ? kMaster : pieces[0].piece.state);
  std::int64_t end = 0;
  const auto reject = [&](std::string_view problem, std::int64_t element, std::uint32_t in, std::string_view cure) {
    throw InputError({file},
                     fmt::format("{} of \"{}\": {} element {} ({})", state, parameter.name, problem, element,
                                 manifest.files[in].name),
                     std::string(cure));
  };
  constexpr std::string_view kGap = "files are missing, or the plans of these ranks are not of one job";
  for (const Found& found : pieces) {
    const std::int64_t begin = found.piece.offset.value;
    if (begin > end) reject("nothing has", end, found.file, kGap);
    if (begin < end)
      reject("two pieces have", begin, found.file, "two ranks saved the same; each must have elements of its own");
    if (found.piece.type != pieces[0].piece.type)
      reject("the type changes at", begin, found.file, "take another checkpoint");
    end += found.piece.numel.value;
  }
  if (end != numel_of(parameter)) reject("nothing has", end, pieces.back().file, kGap);
}

}  // namespace

std::size_t index_of(StateBits state) {
  const auto* found = std::find(kSavedStates.begin(), kSavedStates.end(), state);
  EBB_ASSERT(found != kSavedStates.end());
  return static_cast<std::size_t>(found - kSavedStates.begin());
}

std::string_view name_of_state(StateBits state) { return kStateNames[index_of(state)]; }

std::string tensor_name(const Piece& piece, const std::string& parameter) {
  return fmt::format("{}/{}@{}", name_of_state(piece.state), parameter, piece.offset.value);
}

std::int64_t numel_of(const Parameter& parameter) {
  return std::accumulate(parameter.shape.begin(), parameter.shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::string data_file_name(std::int64_t rank) { return fmt::format("rank-{:05d}.safetensors", rank); }

Header header_of(const Manifest& manifest, std::size_t i) {
  const DataFile& file = manifest.files[i];
  Header header;
  header.metadata = {{"format", "ebb-checkpoint"},
                     {"version", fmt::format("{}", kVersion)},
                     {"job", manifest.what.job},
                     {"step", fmt::format("{}", manifest.what.place.steps)},
                     {"file", file.name},
                     {"ranks", fmt::format("{}", manifest.what.ranks)},
                     {"save", identity(manifest.what).text()}};
  std::int64_t at = 0;
  for (const Piece& piece : file.pieces) {
    const std::int64_t end = at + piece.numel.value * size_of(piece.type);
    header.tensors.push_back({.name = tensor_name(piece, manifest.parameters[piece.parameter].name),
                              .type = piece.type,
                              .shape = {piece.numel.value},
                              .begin = at,
                              .end = end});
    at = end;
  }
  return header;
}

std::vector<std::int64_t> piece_places(const DataFile& file, std::int64_t header_bytes) {
  std::vector<std::int64_t> places = {header_bytes};
  for (const Piece& piece : file.pieces) places.push_back(places.back() + piece.numel.value * size_of(piece.type));
  return places;
}

std::vector<std::array<std::vector<Found>, kSavedStates.size()>> places_of(const Manifest& manifest,
                                                                           const std::string& file) {
  std::vector<std::array<std::vector<Found>, kSavedStates.size()>> places(manifest.parameters.size());
  for (std::size_t i = 0; i < manifest.files.size(); ++i) {
    const DataFile& data = manifest.files[i];
    const auto header = static_cast<std::int64_t>(header_text(header_of(manifest, i)).size());
    const std::vector<std::int64_t> at = piece_places(data, header);
    for (std::size_t k = 0; k < data.pieces.size(); ++k)
      places[data.pieces[k].parameter][index_of(data.pieces[k].state)].push_back(
          {data.pieces[k], static_cast<std::uint32_t>(i), at[k]});
  }
  for (auto& of_parameter : places)
    for (auto& of_state : of_parameter)
      std::sort(of_state.begin(), of_state.end(),
                [](const Found& a, const Found& b) { return a.piece.offset < b.piece.offset; });
  for (std::size_t state = 0; state < kSavedStates.size(); ++state) {
    const auto has = [state](const auto& of_parameter) { return !of_parameter[state].empty(); };
    if (std::none_of(places.begin(), places.end(), has)) continue;
    for (std::size_t p = 0; p < places.size(); ++p) {
      const Parameter& parameter = manifest.parameters[p];
      if (places[p][state].empty() && numel_of(parameter) > 0)
        throw InputError({file}, fmt::format("{} of \"{}\" is missing", kStateNames[state], parameter.name),
                         "other parameters have it: the checkpoint is not whole");
      if (!places[p][state].empty()) require_whole(places[p][state], parameter, manifest, file);
    }
  }
  return places;
}

}  // namespace ebb::replay::checkpoint
