// Checkpoints: what a save leaves on a disk and a load reads, whatever kind of memory the state came from.
//
//   DIRECTORY/step-00000120/            a checkpoint; being written it is called step-00000120.partial
//     manifest.json                     what it is, all tensors with hashes, all files with sizes
//     rank-00000.safetensors ...        a file a rank: the pieces of parameters whose state the rank owned
//
// Whole at any moment. Files are written beside (.partial), fsynced; one rank writes the manifest when all are there,
// fsyncs, and renames the directory into place; older checkpoints go afterwards. So whenever a process dies there is
// the old one, the new one, or both, and a .partial that the next save removes. Data files are safetensors
// (https://github.com/huggingface/safetensors: 8 bytes of header length, JSON, data without holes), so that other tools
// read them; the header is padded so that data begins at 4096 bytes. A tensor of a data file is a piece: elements
// [offset, offset + numel) of a flattened parameter, of one state, named "STATE/PARAMETER@OFFSET" with STATE exp_avg,
// exp_avg_sq, master or param. Hashes: XXH3 (128 bits) of each block of a file (4 MiB), header included, in the
// manifest, and of the manifest at its end, so that a load checks with all its threads whatever the sizes of pieces.
// Beside them `content`: a sum over all elements of a state that depends on (parameter, element, bits) alone and not on
// how ranks share them (hashes.hpp), so that two checkpoints of one state are equal whatever the number of ranks.
//
// Two saves at once: files of a save are locked, so a second one of the same step is refused, and one of another step
// leaves it alone. Not here: CUDA; which bytes go where in memory (program.hpp: Store, Fetch); collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/plan.hpp"
#include "models/units.hpp"
#include "replay/training.hpp"

namespace ebb::replay::checkpoint {

/// Elements [offset, offset + numel) of a parameter's `state` (kExpAvg, kExpAvgSq, kMaster, kParams).
struct Piece {
  std::uint32_t parameter = 0;  // into Description::parameters
  StateBits state = kMaster;
  Numel offset{0};
  Numel numel{0};
  Dtype type = Dtype::fp32;
  bool operator==(const Piece&) const = default;
};

struct Parameter {
  std::string name;
  std::vector<std::int64_t> shape;
  bool operator==(const Parameter&) const = default;
};

/// What of a checkpoint all ranks agree on.
struct Description {
  std::string job;
  std::int64_t ranks = 1;
  TrainingPlace place;
  TrainingOrigin origin;
  Precision precision;
};

/// Sizes and times of one rank's part.
struct Written {
  Bytes bytes{0};      // of the data file
  double seconds = 0;  // from the first write to the end of fsync
};

struct WriteOptions {
  int threads = 0;      // that hash and write; 0: 2
  bool direct = true;   // O_DIRECT where the file system takes it
  Bytes block = 4_MiB;  // of one write and one hash; a multiple of 4096. A rank takes 8 + 2 threads of them
};

/// One rank's part of a save. Usable from one thread.
class RankWriter {
 public:
  /// Makes DIRECTORY/step-N.partial if need be and the rank's file, with room for all of it. `parameters`: the rank's
  /// own table; `pieces`: all that will be written, in file order but for larger types first (so that every tensor lies
  /// at a multiple of its element). IoError (with the path and the cure: no space, read-only, not a directory, another
  /// save of this step going on). Rank 0 also removes what killed saves have left.
  RankWriter(const std::string& directory, const Description& what, std::int64_t rank,
             std::vector<Parameter> parameters, std::vector<Piece> pieces, WriteOptions options = {});
  ~RankWriter();  // an unfinished file is removed
  RankWriter(RankWriter&&) noexcept;

  /// Elements [first, first + numel) of piece `piece`, which lie at `data`; taken when it returns, in any order, each
  /// element once. IoError when an earlier write has failed.
  void write(std::size_t piece, Numel first, Numel numel, const std::byte* data);
  /// Every byte on the disk. Also writes the rank's part of the manifest beside its file. Keep the writer until
  /// commit() has returned: it holds the lock.
  Written finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// By one rank, when all have finished: manifest, fsync, rename, old ones away (but `keep`; 0: all stay). Returns the
/// checkpoint's path. InputError where the ranks' pieces are not each parameter once; IoError; in both cases there is
/// no new checkpoint and the old ones are as they were.
std::string commit(const std::string& directory, const Description& what, std::size_t keep);

/// A checkpoint that has been looked at: immutable, usable from several threads.
class Reader {
 public:
  /// `path`: a checkpoint, or a directory of them, of which the newest counts. Checks everything: manifest, sizes,
  /// headers; with `hashes` every byte (one Reader for all ranks of a process reads it once). InputError with the file
  /// and the reason (truncated, changed, pieces missing or twice, files of another save, no checkpoint, another
  /// version); nothing else has happened then. `threads`: that check hashes; 0: as many as the machine has, at most 16.
  explicit Reader(const std::string& path, bool hashes = true, int threads = 0);
  ~Reader();
  Reader(Reader&&) noexcept;

  const std::string& path() const;
  const Description& description() const;
  const std::vector<Parameter>& parameters() const;  // of all ranks
  /// InputError unless it has every one of `parameters` with its shape and `states` (StateBits) of it in these types.
  /// What else it has does not matter: a rank asks for its own. Where a parameter of another parallel size has the
  /// name, the message says which size differs.
  void require(std::span<const Parameter> parameters, std::uint8_t states, const Precision& precision) const;

  /// InputError naming a tensor and its file where a parameter is left over: it is of a larger model. `taken`: by
  /// parameter, '1' where some rank of the job has it.
  void require_none_left(std::string_view taken) const;

  /// Elements [offset, offset + numel) of the state of the named parameter, whichever files have them, to `data`.
  /// IoError; InputError where there is no such state, type or range, or a file has changed since it was checked.
  void read(const std::string& parameter, StateBits state, Numel offset, Numel numel, Dtype type,
            std::byte* data) const;
  /// fp32 of the saved parameters, for masters that are made from them.
  void read_params_as_fp32(const std::string& parameter, Numel offset, Numel numel, float* data) const;

  /// By state: the sum that does not depend on the number of ranks. 0 for a state that is not in the checkpoint.
  std::uint64_t content(StateBits state) const;
  /// The type that a state is saved in; nothing where it is not in the checkpoint.
  std::optional<Dtype> type(StateBits state) const;
  /// Of all data files.
  Bytes bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Paths of the whole checkpoints in `directory`, oldest first.
std::vector<std::string> list(const std::string& directory);

/// Makes the directory, and IoError where it is none or may not be written: before training, not at its first save.
void require_writable(const std::string& directory);

/// InputError where a checkpoint of a later step than `step` lies in `directory`. The newest is the one of the highest
/// step, so a run that begins with an earlier one, or anew, would save beside it in vain: the next resume would take
/// the other run's. Whoever saves there asks first.
void require_newest(const std::string& directory, std::int64_t step);

}  // namespace ebb::replay::checkpoint
