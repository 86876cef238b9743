#include <set>

#include "replay/groups.hpp"

namespace ebb::replay {

void CommRegistry::add(NcclComm* comm) {
  const std::lock_guard lock(mutex_);
  comms_.push_back(comm);
}

void CommRegistry::remove(NcclComm* comm) {
  const std::lock_guard lock(mutex_);
  std::erase(comms_, comm);
}

void CommRegistry::abort_all() noexcept {
  const std::lock_guard lock(mutex_);
  for (NcclComm* comm : comms_) comm->abort();
}

// All ranks make their communicators in the same, ascending order, so that nobody waits in a circle.
RankComms::RankComms(std::span<const Program* const> programs, const NcclIds& ids, CommRegistry& registry)
    : registry_(registry) {
  std::set<CommGroup> own;
  for (const CommGroup& group : distinct_groups(programs)) {
    if (ids.contains(group)) own.insert(group);
  }
  comms_.reserve(own.size());  // addresses stay
  try {
    for (const CommGroup& group : own) {
      const std::int64_t place = (programs[0]->plan->rank - group.first) / group.stride;
      comms_.emplace_back(ids.at(group), static_cast<int>(place), static_cast<int>(group.members));
      registry_.add(&comms_.back());
    }
  } catch (...) {
    forget();  // whoever stops the others must not abort what is gone
    throw;
  }
  for (const Program* program : programs) {
    std::vector<NcclComm*>& by_op = by_op_.emplace_back();
    for (const std::optional<CommGroup>& group : groups_of_ops(*program)) {
      const auto found = group ? own.find(*group) : own.end();
      by_op.push_back(found == own.end() ? nullptr
                                         : &comms_[static_cast<std::size_t>(std::distance(own.begin(), found))]);
    }
  }
}

RankComms::~RankComms() { forget(); }

void RankComms::forget() {
  for (NcclComm& comm : comms_) registry_.remove(&comm);
}

void RankComms::check() {
  for (NcclComm& comm : comms_) comm.check();
}

}  // namespace ebb::replay
