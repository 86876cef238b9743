// ReadyPart: a plan of a rank's life made ready for its GPU (ready.hpp, issue_plan.hpp), and what all of them need.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "replay/host_store.hpp"
#include "replay/instruments.hpp"
#include "replay/issue_plan.hpp"
#include "replay/issuer.hpp"
#include "replay/life.hpp"
#include "replay/rank_thread.hpp"

namespace ebb::replay {

struct ReadyPart {
  explicit ReadyPart(const Program& of);

  const Program& program;
  std::vector<Ready> actions;
  IssuePlan issue;
  Bytes planned{0};  // live bytes at their highest
  StandIns stand_ins;
  std::optional<Issuer> issuer;

  LifePart part() const { return program.plan->part; }
  std::uint32_t ops() const { return static_cast<std::uint32_t>(actions.size()); }
};

/// The rank's programs: init first, then by LifePart. InputError where there is none of init.
std::vector<const Program*> programs_of(const LifeRank& rank);
/// One each. A skip's issue shares the beginning of its step's.
std::vector<std::unique_ptr<ReadyPart>> ready_parts(const std::vector<const Program*>& programs);

/// Side of the products that stand in for the part's compute; 0 where there are none.
std::int64_t gemm_size(const ExecuteOptions& options, const std::vector<Ready>& actions);
InstrumentNeeds needs_of(const std::vector<std::unique_ptr<ReadyPart>>& parts, const ExecuteOptions& options);
/// CPUs for the host's own work on state; empty: it has none.
std::vector<int> cpus_of(const std::vector<std::unique_ptr<ReadyPart>>& parts, const RankPlace& place);
HostStoreOptions host_store(const std::vector<const Program*>& programs, int device);

/// Device memory of instruments that run_rank_life() will make.
Bytes instruments_needed(const LifeRank& rank, const ExecuteOptions& options);

}  // namespace ebb::replay
