// ReferenceRun: ranks that take training steps, or the parts of a life, together on the CPU, one stream held back
// (reference.hpp). A test can look into a rank's memory between them.
//
// Collectives meet: a rank that comes to one waits there with that stream, the others go on; when the last member has
// arrived, it happens. The n-th collective of a rank on a group of ranks meets the n-th of the others.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/plan.hpp"
#include "replay/life.hpp"
#include "replay/reference_collectives.hpp"

namespace ebb::replay {

/// InputError when the rank has no program of `part`.
const Program& program_of(const LifeRank& rank, LifePart part);

class ReferenceRun {
 public:
  /// `programs` outlive it. InputError when a collective names a rank that has no program.
  ReferenceRun(std::span<const Program> programs, const TrainingOptions& options, std::optional<StreamKind> held_back,
               std::size_t most_on = 0);

  /// A life, which begins with LifePart::init. `ranks` outlive it.
  ReferenceRun(std::span<const LifeRank> ranks, const TrainingOptions& options, std::optional<StreamKind> held_back,
               std::size_t most_on = 0);

  /// InputError when ranks wait for each other for ever, or meet in different collectives.
  void step();
  /// The next part of a life. A step that all ranks find not finite goes on as `skip` where they have that part.
  /// Returns the part that it became. InputError as above.
  LifePart part(LifePart part, std::optional<LifePart> skip = std::nullopt);
  ReferenceRank& rank(std::size_t index) { return ranks_[index]; }
  std::size_t size() const { return ranks_.size(); }

 private:
  /// Where one rank stands in the step.
  struct Progress {
    std::vector<std::vector<std::uint32_t>> streams;  // ops by stream, in program order
    std::vector<std::size_t> next;                    // by stream: how many have ended
    std::vector<bool> waits;                          // by stream: its next op is a collective that has arrived
    std::vector<bool> ended;                          // by op
    std::map<CommGroup, std::uint32_t> met;           // collectives begun on each group
  };
  struct Meeting {
    std::vector<Member> arrived;  // by place in the group; rank null: not yet
    std::size_t missing = 0;
  };
  using Key = std::pair<CommGroup, std::uint32_t>;

  void add_rank(const Program& program, const TrainingOptions& options, ReferenceRank::Begin begin);
  void check_members(const Program& program) const;
  void begin();
  void run_all();
  void enter(std::size_t rank);
  void decide(std::size_t rank, std::uint32_t op);
  void check_drained(std::size_t rank, std::uint32_t op);
  std::optional<std::uint32_t> runnable(std::size_t rank, bool held) const;
  void take(std::size_t rank, std::uint32_t op);
  void arrive(std::size_t rank, std::uint32_t op);
  void finish(std::size_t rank, std::uint32_t op);
  bool done() const;
  [[noreturn]] void deadlock() const;
  std::string name(std::size_t rank, std::uint32_t op) const;
  static std::string name(const Plan& plan, std::uint32_t op);

  std::span<const LifeRank> lives_;
  std::optional<LifePart> skip_;  // of the part that runs
  std::optional<bool> finite_;    // what the first rank found that has looked
  std::optional<StreamKind> held_back_;
  std::size_t most_on_ = 0;
  std::vector<ReferenceRank> ranks_;
  std::map<std::int64_t, std::size_t> index_of_rank_;
  std::vector<Progress> progress_;
  std::map<Key, Meeting> meetings_;
};

}  // namespace ebb::replay
