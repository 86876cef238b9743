#include "planner/step_path.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "models/errors.hpp"

namespace ebb {

std::string_view name_of(Wait wait) {
  switch (wait) {
    case Wait::nothing:
      return "nothing";
    case Wait::dependency:
      return "dependency";
    case Wait::stream:
      return "stream order";
    case Wait::link:
      return "link";
    case Wait::host:
      return "host thread";
    case Wait::peers:
      return "other ranks";
  }
  return "";
}

namespace {

constexpr std::uint32_t kNone = 0xffffffffU;

bool is_copy(OpKind kind) { return kind == OpKind::copy_h2d || kind == OpKind::copy_d2h; }
bool waits_for_peers(const Op& op) { return op.kind == OpKind::collective && op.members > 1; }

class Walk {
 public:
  Walk(const Plan& plan, const Timeline& timeline);
  std::vector<PathOp> run() const;

 private:
  struct Before {
    std::uint32_t op = kNone;
    Wait wait = Wait::nothing;
    Ticks end{0};
  };

  /// The op that let `op` start, or none.
  Before before(std::uint32_t op) const;
  void consider(std::uint32_t candidate, Wait wait, Ticks start, Before& best) const;
  std::uint32_t copy_ended_at(const Op& op, Ticks tick) const;

  const Plan& plan_;
  const Timeline& timeline_;
  std::vector<std::uint32_t> on_stream_;                                // by op: the one before it on its stream
  std::vector<std::uint32_t> on_host_;                                  // by op: the last on a host stream before it
  std::array<std::vector<std::pair<Ticks, std::uint32_t>>, 2> copies_;  // by direction, ascending by end
};

Walk::Walk(const Plan& plan, const Timeline& timeline) : plan_(plan), timeline_(timeline) {
  const std::size_t n = plan.ops.size();
  EBB_ASSERT(timeline.start.size() == n && timeline.end.size() == n);
  on_stream_.assign(n, kNone);
  on_host_.assign(n, kNone);
  std::vector<std::uint32_t> last(plan.streams.size(), kNone);
  std::uint32_t host = kNone;
  for (std::uint32_t i = 0; i < n; ++i) {
    const Op& op = plan.ops[i];
    on_stream_[i] = std::exchange(last[op.stream.index], i);
    on_host_[i] = host;
    if (plan.streams[op.stream.index].kind == StreamKind::host) host = i;
    if (is_copy(op.kind)) copies_[op.kind == OpKind::copy_d2h ? 1 : 0].emplace_back(timeline.end[i], i);
  }
  for (auto& direction : copies_) std::sort(direction.begin(), direction.end());
}

/// Of those that had ended by then the one that ended last; the first of equals.
void Walk::consider(std::uint32_t candidate, Wait wait, Ticks start, Before& best) const {
  if (candidate == kNone) return;
  const Ticks end = timeline_.end[candidate];
  if (end > start || (best.op != kNone && end <= best.end)) return;
  best = {candidate, wait, end};
}

std::uint32_t Walk::copy_ended_at(const Op& op, Ticks tick) const {
  const auto& ends = copies_[op.kind == OpKind::copy_d2h ? 1 : 0];
  const auto found = std::lower_bound(ends.begin(), ends.end(), std::pair{tick, std::uint32_t{0}});
  return found != ends.end() && found->first == tick ? found->second : kNone;
}

Walk::Before Walk::before(std::uint32_t index) const {
  const Op& op = plan_.ops[index];
  const Ticks start = timeline_.start[index];
  Before best;
  for (const OpId dep : plan_.deps_of(op)) consider(dep.index, Wait::dependency, start, best);
  consider(on_stream_[index], Wait::stream, start, best);
  // A copy that another stream's let onto the link; one that itself takes no time is no reason.
  if (is_copy(op.kind) && (best.op == kNone || best.end < start)) {
    const std::uint32_t other = copy_ended_at(op, start);
    if (other < index) consider(other, Wait::link, start, best);
  }
  consider(on_host_[index], Wait::host, start, best);
  return best;
}

std::vector<PathOp> Walk::run() const {
  std::vector<PathOp> path;
  if (plan_.ops.empty()) return path;
  const auto last = std::max_element(timeline_.end.begin(), timeline_.end.end());
  auto at = static_cast<std::uint32_t>(last - timeline_.end.begin());
  while (at != kNone) {
    const Before previous = before(at);
    PathOp step{{at}, timeline_.start[at], timeline_.end[at], previous.wait, {}};
    step.waited = step.start - previous.end;
    if (step.waited > Ticks{0}) step.wait = waits_for_peers(plan_.ops[at]) ? Wait::peers : Wait::host;
    if (step.time() > Ticks{0}) path.push_back(step);
    at = previous.op;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace

std::vector<PathOp> step_path(const Plan& plan, const Timeline& timeline) { return Walk(plan, timeline).run(); }

}  // namespace ebb
