// What a rank's program of a save writes and one of a load reads, as the checkpoint store knows it: pieces of
// parameters instead of owned elements. For both executors. Not here: files (checkpoint/), bytes in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "replay/checkpoint/checkpoint.hpp"
#include "replay/life.hpp"
#include "replay/program.hpp"

namespace ebb::replay {

/// The rank's own parameters: what a writer lists, and a reader must have.
std::vector<checkpoint::Parameter> checkpoint_parameters(const Plan& plan);

/// States (StateBits) that the program stores or fetches.
std::uint8_t checkpoint_states(const Program& program);

/// InputError unless `reader` has what the load needs: all its states, or the parameters alone (LifePart::load_params).
void require_for(const checkpoint::Reader& reader, const Program& load);

/// InputError, naming `file` and what is missing, unless the part save stores every state of every shard, and load and
/// load_params fetch all that they have to: a plan that keeps less is found before training, not at the resume.
void require_all_moved(const Program& program, const std::string& file);

/// By parameter of `reader`: '1' where one of `ranks` has it, else '0'.
std::string parameters_taken(const checkpoint::Reader& reader, std::span<const LifeRank> ranks);

/// InputError unless the checkpoint's run began as this one did: padding is made from the first seed, and the loss
/// scale moves by the rule, so a resume that began otherwise would give other numbers.
void require_origin(const checkpoint::Reader& reader, const TrainingOptions& training);

/// The pieces of a save, whole shards, state by state; and which of them one of the program's own pieces belongs to.
class SavedPieces {
 public:
  explicit SavedPieces(const Program& save);
  const std::vector<checkpoint::Piece>& pieces() const { return pieces_; }
  std::size_t index_of(const CheckpointPiece& piece) const;

 private:
  std::vector<checkpoint::Piece> pieces_;
  std::vector<std::vector<std::size_t>> index_;  // by state (bit number) and shard
};

/// Reads `piece` into `data`. In LifePart::load_params masters are made from the saved parameters.
void fetch_piece(const checkpoint::Reader& reader, const Plan& plan, const CheckpointPiece& piece, std::byte* data);

/// What of a checkpoint all ranks agree on, of this plan's job.
checkpoint::Description describe_checkpoint(const Plan& plan, std::int64_t ranks, const TrainingPlace& place,
                                            const TrainingOptions& training);

}  // namespace ebb::replay
