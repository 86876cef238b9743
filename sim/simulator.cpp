#include "sim/simulator.hpp"

#include <algorithm>

#include "models/errors.hpp"

namespace ebb::sim {
namespace {

GroupForm form_of(const Op& op) { return {op.stride, op.members}; }

/// Classes of the places of this host that are in the rank's group of that form, ascending.
void classes_in_group(const HostRuns& host, std::uint32_t rank, GroupForm form, std::vector<std::uint32_t>& classes) {
  const auto place = std::find(host.class_of_place.begin(), host.class_of_place.end(), rank);
  EBB_ASSERT(place != host.class_of_place.end());
  const std::int64_t first = form.first_of(host.first_rank + (place - host.class_of_place.begin()));
  classes.clear();
  const auto places = static_cast<std::int64_t>(host.class_of_place.size());
  const std::int64_t before = ceil_div(std::max<std::int64_t>(host.first_rank - first, 0), form.stride);
  for (std::int64_t i = before; i < form.members; ++i) {
    const std::int64_t p = first + i * form.stride - host.first_rank;
    if (p >= places) break;
    classes.push_back(host.class_of_place[static_cast<std::size_t>(p)]);
  }
  std::sort(classes.begin(), classes.end());
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
}

}  // namespace

void Simulator::run(const Plan& plan, const Cluster& cluster, const Sharing& sharing, Timeline& out) {
  EBB_ASSERT(sharing.ranks_per_host >= 1);
  start(cluster, sharing.ranks_per_host);
  classes_.assign(static_cast<std::size_t>(sharing.ranks_per_host), 0);
  ranks_.resize(std::max<std::size_t>(ranks_.size(), 1));
  count_ = 1;
  groups_of_.resize(std::max<std::size_t>(groups_of_.size(), 1));
  find_groups(nullptr, plan, 0);
  fabric_.build(cluster, classes_, 1, shapes_);
  ranks_[0].start(plan, cost_, out);
  run_all();
}

void Simulator::run(const HostRuns& host, const Cluster& cluster, std::vector<Timeline>& out) {
  start(cluster, static_cast<std::int64_t>(host.class_of_place.size()));
  count_ = host.plans.size();
  ranks_.resize(std::max(ranks_.size(), count_));
  groups_of_.resize(std::max(groups_of_.size(), count_));
  for (std::uint32_t rank = 0; rank < count_; ++rank) find_groups(&host, *host.plans[rank], rank);
  fabric_.build(cluster, host.class_of_place, count_, shapes_);
  out.resize(count_);
  for (std::size_t rank = 0; rank < count_; ++rank) ranks_[rank].start(*host.plans[rank], cost_, out[rank]);
  run_all();
}

void Simulator::start(const Cluster& cluster, std::int64_t ranks) {
  cost_ = OpCost(cluster, {.ranks_per_host = ranks});
  shapes_.clear();
}

/// The part of these that `op` belongs to, or the end.
std::vector<Simulator::Member>::iterator Simulator::find_member(std::vector<Member>& members, const Op& op) {
  return std::find_if(members.begin(), members.end(), [&](const Member& m) { return m.form == form_of(op); });
}

/// Which groups the rank's plan has. Without `host` all ranks of the host are of one class.
void Simulator::find_groups(const HostRuns* host, const Plan& plan, std::uint32_t rank) {
  std::vector<Member>& mine = groups_of_[rank];
  mine.clear();
  for (const Op& op : plan.ops) {
    if (op.kind != OpKind::collective || op.members <= 1) continue;
    EBB_ASSERT(op.stride >= 1);
    auto member = find_member(mine, op);
    if (member == mine.end()) member = mine.insert(mine.end(), Member{.form = form_of(op)});
    const CollectiveTime time = cost_.collective(op);
    member->wire = std::max(member->wire, time.wire_bytes_per_tick);
    member->host_link = std::max(member->host_link, time.host_link_bytes_per_tick);
  }
  for (Member& member : mine) member.group = group_of(host, rank, member);
}

/// The group in which the rank meets others for `op`. Groups of one form with the same classes fold into one.
std::uint32_t Simulator::group_of(const HostRuns* host, std::uint32_t rank, const Member& member) {
  shape_.wire = member.wire;
  shape_.host_link = member.host_link;
  shape_.classes.assign(1, rank);
  if (host != nullptr) classes_in_group(*host, rank, member.form, shape_.classes);
  std::uint32_t index = 0;
  while (index < shapes_.size() && !(groups_[index].form == member.form && shapes_[index].classes == shape_.classes))
    ++index;
  if (index < shapes_.size()) {
    shapes_[index].wire = std::max(shapes_[index].wire, member.wire);
    shapes_[index].host_link = std::max(shapes_[index].host_link, member.host_link);
    return index;
  }
  shapes_.push_back(shape_);
  groups_.resize(std::max(groups_.size(), shapes_.size()));
  groups_[index].form = member.form;
  groups_[index].waiting.clear();
  return index;
}

void Simulator::run_all() {
  for (const Work work :
       {Work::adam, Work::adam_foreach, Work::none, Work::cast, Work::grad_norm, Work::clip, Work::zero_grads})
    if (fabric_.kernel_shares_hbm(work)) cost_.share_kernels(work);
  engine_.reset(fabric_);
  run_awake();
  while (engine_.advance(ended_)) {
    for (const FlowEngine::Ended& ended : ended_) finish(ended);
    run_awake();
  }
  for (std::size_t rank = 0; rank < count_; ++rank) EBB_ASSERT(ranks_[rank].done());
}

void Simulator::run_awake() {
  RankRun::Ready ready;
  for (std::uint32_t rank = 0; rank < count_; ++rank)
    while (ranks_[rank].next(ready)) start_op(rank, ready);
}

/// Puts an op that shares something into its lane.
void Simulator::start_op(std::uint32_t rank, const RankRun::Ready& ready) {
  const Op& op = ranks_[rank].plan().ops[ready.op];
  if (op.kind == OpKind::collective) return arrive(rank, ready);
  EBB_ASSERT(op.bytes.value >= 0);
  FlowEngine::Task task{.ready = ready.at,
                        .latency = {0},
                        .least_end = ready.least_end,
                        .bytes = static_cast<double>(op.bytes.value),
                        .rank = rank,
                        .op = ready.op};
  std::size_t lane = Fabric::kernel_lane(rank);
  if (op.kind == OpKind::kernel) {
    task.latency = cost_.kernel_floor();
    task.flow = fabric_.kernel_flow(rank, op.work);
  } else {
    const Direction d = op.kind == OpKind::copy_h2d ? Direction::h2d : Direction::d2h;
    lane = Fabric::copy_lane(rank, d);
    task.latency = cost_.copy_latency(op);
    task.flow = fabric_.copy_flow(rank, d, op.host, op.bytes);
  }
  EBB_ASSERT(op.bytes.value == 0 || fabric_.alone(task.flow) > 0);
  engine_.enqueue(lane, task);
}

/// A rank has come to a collective; the last to come starts it.
void Simulator::arrive(std::uint32_t rank, const RankRun::Ready& ready) {
  const Op& op = ranks_[rank].plan().ops[ready.op];
  const auto member = find_member(groups_of_[rank], op);
  EBB_ASSERT(member != groups_of_[rank].end());
  Group& group = groups_[member->group];
  if (group.waiting.empty()) group.ready = group.least_end = {0};
  for (const Arrival& other : group.waiting) EBB_ASSERT(other.rank != rank);
  group.ready = std::max(group.ready, ready.at);
  group.least_end = std::max(group.least_end, ready.least_end);
  group.waiting.push_back({rank, ready.op});
  if (group.waiting.size() < shapes_[member->group].classes.size()) return;

  const CollectiveTime time = cost_.collective(op);
  const FlowId flow = fabric_.group_flow(member->group);
  engine_.enqueue(fabric_.group_lane(member->group), {.ready = group.ready,
                                                      .latency = rounded_ticks(time.latency_ticks),
                                                      .least_end = group.least_end,
                                                      .bytes = time.transfer_ticks * fabric_.alone(flow),
                                                      .flow = flow,
                                                      .rank = rank,
                                                      .op = ready.op});
}

void Simulator::finish(const FlowEngine::Ended& ended) {
  if (ended.lane < fabric_.group_lane(0)) return ranks_[ended.rank].settle(ended.op, ended.start, ended.end);
  std::vector<Arrival>& waiting = groups_[ended.lane - fabric_.group_lane(0)].waiting;
  for (const Arrival& arrival : waiting) ranks_[arrival.rank].settle(arrival.op, ended.start, ended.end);
  waiting.clear();
}

}  // namespace ebb::sim
