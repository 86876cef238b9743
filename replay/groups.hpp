// Groups: which ranks a plan's collectives join, whether they are all here, and a communicator for each.
//
// Not here: what a collective moves (issuer.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replay/nccl.hpp"
#include "replay/program.hpp"

namespace ebb::replay {

/// The group of each op that is a collective of more than one rank; by op id. Pure.
std::vector<std::optional<CommGroup>> groups_of_ops(const Program& program);

/// Distinct groups of all programs, ascending. Pure.
std::vector<CommGroup> distinct_groups(std::span<const Program* const> programs);

/// Ranks of `group` that are not in `present` (ascending). Pure.
std::vector<std::int64_t> missing_ranks(const CommGroup& group, std::span<const std::int64_t> present);

/// Those of `groups` whose ranks are all present. With `alone` the others are left out, and `remarks` says so;
/// otherwise they are an InputError. Pure.
std::vector<CommGroup> complete_groups(std::span<const CommGroup> groups, std::span<const std::int64_t> present,
                                       bool alone, std::vector<std::string>& remarks);

using NcclIds = std::map<CommGroup, NcclId>;

/// Communicators that another thread may have to abort: those of all ranks of this process.
class CommRegistry {
 public:
  void add(NcclComm* comm);
  void remove(NcclComm* comm);
  void abort_all() noexcept;

 private:
  std::mutex mutex_;
  std::vector<NcclComm*> comms_;
};

/// One rank's communicators. All calls from its thread, with its device current.
class RankComms {
 public:
  /// Of all groups of the rank's programs. Blocks until the other ranks have come. Groups without an id get none.
  RankComms(std::span<const Program* const> programs, const NcclIds& ids, CommRegistry& registry);
  ~RankComms();
  RankComms(const RankComms&) = delete;
  RankComms& operator=(const RankComms&) = delete;

  /// Of a collective of the program that was given at `program`; null where it is left out.
  NcclComm* of(std::uint32_t op, std::size_t program = 0) const { return by_op_[program][op]; }
  void check();

 private:
  void forget();

  CommRegistry& registry_;
  std::vector<NcclComm> comms_;
  std::vector<std::vector<NcclComm*>> by_op_;  // by program
};

}  // namespace ebb::replay
