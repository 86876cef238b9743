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
RankComms::RankComms(const Program& program, const NcclIds& ids, CommRegistry& registry) : registry_(registry) {
  const std::vector<std::optional<CommGroup>> groups = groups_of_ops(program);
  std::set<CommGroup> own;
  for (const auto& group : groups) {
    if (group && ids.contains(*group)) own.insert(*group);
  }
  comms_.reserve(own.size());  // addresses stay
  try {
    for (const CommGroup& group : own) {
      const std::int64_t place = (program.plan->rank - group.first) / group.stride;
      comms_.emplace_back(ids.at(group), static_cast<int>(place), static_cast<int>(group.members));
      registry_.add(&comms_.back());
    }
  } catch (...) {
    forget();  // whoever stops the others must not abort what is gone
    throw;
  }
  by_op_.resize(groups.size(), nullptr);
  for (std::size_t op = 0; op < groups.size(); ++op) {
    if (!groups[op]) continue;
    const auto found = own.find(*groups[op]);
    if (found != own.end()) by_op_[op] = &comms_[static_cast<std::size_t>(std::distance(own.begin(), found))];
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
