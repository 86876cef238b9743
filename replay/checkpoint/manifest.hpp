// manifest.json: what a checkpoint is, which files belong to it, what is in them, and their hashes. A rank writes the
// same for its own file (rank-00000.json); commit() joins them.
//
// The text ends in a hash of all before it, so that any byte of it that changes is found. Data files are described
// completely: with these tables the header of each has only one possible text. Not here: reading and writing files.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "replay/checkpoint/checkpoint.hpp"
#include "replay/checkpoint/hashes.hpp"
#include "replay/checkpoint/safetensors.hpp"

namespace ebb::replay::checkpoint {

inline constexpr std::array<StateBits, 4> kSavedStates = {kExpAvg, kExpAvgSq, kMaster, kParams};
std::size_t index_of(StateBits state);            // into kSavedStates
std::string_view name_of_state(StateBits state);  // "exp_avg", "exp_avg_sq", "master", "param"

/// Every rank's sums of kSavedStates.
using Contents = std::array<std::uint64_t, kSavedStates.size()>;

struct DataFile {
  std::string name;
  Bytes bytes{0};
  std::vector<Piece> pieces;  // as they lie in the file
  Bytes block{0};             // `blocks` are hashes of so many bytes each; the last of what is left
  std::vector<Hash128> blocks;
};

struct Manifest {
  Description what;
  std::vector<Parameter> parameters;
  std::vector<DataFile> files;  // by rank
  Contents contents{};
};

inline constexpr std::int64_t kVersion = 2;  // 1 had no origin

std::string manifest_text(const Manifest& manifest);
/// InputError naming `file`: not a manifest, another version, changed since it was written.
Manifest parse_manifest(std::string_view text, const std::string& file);
/// ... of the file at `path`. IoError.
Manifest read_manifest(const std::string& path);

/// Whether two ranks mean the same save. A hash, so that each data file can carry it.
Hash128 identity(const Description& what);

/// The header that file `i` has.
Header header_of(const Manifest& manifest, std::size_t i);
/// Where the pieces of a file begin, counted from the file's first byte; one more for the end.
std::vector<std::int64_t> piece_places(const DataFile& file, std::int64_t header_bytes);

/// All pieces of one state of one parameter, ascending, and where they are.
struct Found {
  Piece piece;
  std::uint32_t file = 0;
  std::int64_t at = 0;  // in the file
};
/// By parameter and index_of(state). InputError naming `file` where, of a state that there is, a parameter's elements
/// are missing, there twice, or of several types.
std::vector<std::array<std::vector<Found>, kSavedStates.size()>> places_of(const Manifest& manifest,
                                                                           const std::string& file);

std::int64_t numel_of(const Parameter& parameter);
/// "master/NAME@0": of a piece of the parameter of this name.
std::string tensor_name(const Piece& piece, const std::string& parameter);
std::string data_file_name(std::int64_t rank);

}  // namespace ebb::replay::checkpoint
