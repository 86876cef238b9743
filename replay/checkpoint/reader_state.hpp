// What a Reader knows of its checkpoint: for the files that implement it alone.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "replay/checkpoint/checkpoint.hpp"
#include "replay/checkpoint/file.hpp"
#include "replay/checkpoint/manifest.hpp"

namespace ebb::replay::checkpoint {

inline constexpr const char* kOther = "take another checkpoint";

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

}  // namespace ebb::replay::checkpoint
