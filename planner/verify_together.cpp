#include "planner/verify_together.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "models/errors.hpp"

namespace ebb {

namespace {

/// One op of one plan.
struct Place {
  std::uint32_t plan = 0;
  OpId op;
};

std::string text_of(const CommGroup& group) {
  std::string text = "ranks " + std::to_string(group.first);
  if (group.members > 1) text += ", " + std::to_string(group.first + group.stride);
  if (group.members > 2) text += ", ... " + std::to_string(group.first + group.stride * (group.members - 1));
  return text;
}

bool is_member(const CommGroup& group, std::int64_t rank) {
  const std::int64_t offset = rank - group.first;
  return offset >= 0 && offset % group.stride == 0 && offset / group.stride < group.members;
}

/// What a rank issues on one communicator, in program order.
struct Sequence {
  std::uint32_t plan = 0;
  std::vector<OpId> ops;
};

class Together {
 public:
  explicit Together(std::span<const Plan> plans) : plans_(plans) { collect(); }
  std::vector<JobHazard> run();

 private:
  void collect();
  void compare(const CommGroup& group, const Sequence& a, const Sequence& b);
  void number_nodes();
  std::vector<bool> finish() const;
  void find_deadlock();
  void report_cycle(const std::vector<bool>& finished);

  const Op& at(const Place& place) const { return plans_[place.plan].ops[place.op.index]; }
  std::uint32_t node(std::uint32_t plan, OpId op) const { return nodes_[plan][op.index]; }
  std::string describe_at(const Place& place) const { return describe(plans_[place.plan], place.op); }
  template <class Visit>
  void for_each_predecessor(const Place& place, Visit visit) const;

  std::span<const Plan> plans_;
  std::map<CommGroup, std::vector<Sequence>> sequences_;  // of every member here, ranks ascending
  std::vector<std::vector<std::uint32_t>> nodes_;         // by plan and op: ops that meet share a node
  std::vector<std::vector<OpId>> before_;                 // by plan and op: the op before it on its stream
  std::vector<std::vector<Place>> places_;                // by node
  std::vector<JobHazard> hazards_;
};

void Together::collect() {
  std::map<std::int64_t, std::uint32_t> by_rank;
  for (std::uint32_t p = 0; p < plans_.size(); ++p) EBB_ASSERT(by_rank.emplace(plans_[p].rank, p).second);
  std::set<CommGroup> groups;
  for (const Plan& plan : plans_) {
    for (const Op& op : plan.ops) {
      if (op.kind == OpKind::collective) groups.insert(group_of(plan, op));
    }
  }
  for (const CommGroup& group : groups) {
    for (const auto& [rank, plan] : by_rank) {
      if (is_member(group, rank)) sequences_[group].push_back({plan, {}});
    }
  }
  for (auto& [group, sequences] : sequences_) {
    for (Sequence& sequence : sequences) {
      const Plan& plan = plans_[sequence.plan];
      for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
        if (plan.ops[i].kind == OpKind::collective && group_of(plan, plan.ops[i]) == group) sequence.ops.push_back({i});
      }
    }
  }
}

/// Reports the first difference.
void Together::compare(const CommGroup& group, const Sequence& a, const Sequence& b) {
  const std::size_t most = std::max(a.ops.size(), b.ops.size());
  const auto side = [&](const Sequence& sequence, std::size_t k) {
    std::string text = "rank " + std::to_string(plans_[sequence.plan].rank);
    if (k >= sequence.ops.size()) return text + " issues nothing more";
    const Op& op = at({sequence.plan, sequence.ops[k]});
    text +=
        " issues " + describe_at({sequence.plan, sequence.ops[k]}) + " of " + std::to_string(op.bytes.value) + " bytes";
    if (op.domains != 1) text += " over " + std::to_string(op.domains) + " domains";
    return text;
  };
  for (std::size_t k = 0; k < most; ++k) {
    if (k < a.ops.size() && k < b.ops.size()) {
      const Op& x = at({a.plan, a.ops[k]});
      const Op& y = at({b.plan, b.ops[k]});
      if (x.work == y.work && x.bytes == y.bytes && x.domains == y.domains) continue;
    }
    JobHazard hazard{.kind = HazardKind::collective_mismatch,
                     .group = group,
                     .first_rank = plans_[a.plan].rank,
                     .second_rank = plans_[b.plan].rank,
                     .first = k < a.ops.size() ? a.ops[k] : OpId::none(),
                     .second = k < b.ops.size() ? b.ops[k] : OpId::none(),
                     .missing = std::nullopt,
                     .text = {}};
    hazard.text = "operation " + std::to_string(k) + " among " + text_of(group) + ": " + side(a, k) + ", " +
                  side(b, k) + "; needs: the same on every rank";
    hazards_.push_back(std::move(hazard));
    return;
  }
}

void Together::number_nodes() {
  std::uint32_t next = 0;
  for (const Plan& plan : plans_) {
    std::vector<OpId> last(plan.streams.size());
    nodes_.emplace_back();
    before_.emplace_back();
    for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
      OpId& previous = last[plan.ops[i].stream.index];
      before_.back().push_back(std::exchange(previous, OpId{i}));
      nodes_.back().push_back(next++);
    }
  }
  for (const auto& [group, sequences] : sequences_) {
    for (const Sequence& sequence : sequences) {
      for (std::size_t k = 0; k < sequence.ops.size(); ++k) {
        const std::uint32_t meeting = node(sequences.front().plan, sequences.front().ops[k]);
        nodes_[sequence.plan][sequence.ops[k].index] = meeting;
      }
    }
  }
  places_.resize(next);
  for (std::uint32_t p = 0; p < plans_.size(); ++p) {
    for (std::uint32_t i = 0; i < plans_[p].ops.size(); ++i) places_[node(p, {i})].push_back({p, {i}});
  }
}

template <class Visit>
void Together::for_each_predecessor(const Place& place, Visit visit) const {
  const OpId previous = before_[place.plan][place.op.index];
  if (previous.valid()) visit(Place{place.plan, previous});
  for (const OpId dep : plans_[place.plan].deps_of(at(place))) visit(Place{place.plan, dep});
}

/// Which nodes can finish: Kahn's algorithm. Those on a cycle, and those behind one, cannot.
std::vector<bool> Together::finish() const {
  std::vector<std::uint32_t> waits(places_.size(), 0);
  std::vector<std::vector<std::uint32_t>> followers(places_.size());
  for (std::uint32_t n = 0; n < places_.size(); ++n) {
    for (const Place& place : places_[n]) {
      for_each_predecessor(place, [&](const Place& earlier) {
        followers[node(earlier.plan, earlier.op)].push_back(n);
        ++waits[n];
      });
    }
  }
  std::vector<bool> finished(places_.size(), false);
  std::vector<std::uint32_t> ready;
  for (std::uint32_t n = 0; n < places_.size(); ++n) {
    if (waits[n] == 0) ready.push_back(n);
  }
  while (!ready.empty()) {
    const std::uint32_t n = ready.back();
    ready.pop_back();
    finished[n] = true;
    for (const std::uint32_t follower : followers[n]) {
      if (--waits[follower] == 0) ready.push_back(follower);
    }
  }
  return finished;
}

void Together::find_deadlock() {
  number_nodes();
  const std::vector<bool> finished = finish();
  for (std::uint32_t n = 0; n < places_.size(); ++n) {
    if (!places_[n].empty() && !finished[n]) return report_cycle(finished);
  }
}

/// An unfinished node has an unfinished predecessor: walking back from one leads into a cycle. Each step of the walk
/// stays in one plan; a plan is left where ranks meet.
void Together::report_cycle(const std::vector<bool>& finished) {
  struct Step {
    std::uint32_t node;
    Place later;    // an op of this node ...
    Place earlier;  // ... that waits for this one, which is unfinished too
  };
  std::vector<Step> walk;
  std::map<std::uint32_t, std::size_t> seen;
  std::uint32_t n = 0;
  while (places_[n].empty() || finished[n]) ++n;
  while (seen.emplace(n, walk.size()).second) {
    Step step{.node = n, .later = {}, .earlier = {}};
    for (const Place& place : places_[n]) {
      for_each_predecessor(place, [&](const Place& earlier) {
        if (!finished[node(earlier.plan, earlier.op)]) step.later = place, step.earlier = earlier;
      });
    }
    EBB_ASSERT(step.earlier.op.valid());
    walk.push_back(step);
    n = node(step.earlier.plan, step.earlier.op);
  }
  walk.erase(walk.begin(), walk.begin() + static_cast<std::ptrdiff_t>(seen.at(n)));

  // Runs of one plan from meeting to meeting, rotated to begin where a plan is left.
  const auto changes = [&](std::size_t i) {
    const std::size_t previous = (i + walk.size() - 1) % walk.size();
    return walk[previous].later.plan != walk[i].later.plan;
  };
  std::size_t start = 0;
  while (start < walk.size() && !changes(start)) ++start;
  EBB_ASSERT(start < walk.size());  // a cycle within one plan would need a dependency on a later op
  std::rotate(walk.begin(), walk.begin() + static_cast<std::ptrdiff_t>(start), walk.end());
  struct Run {
    Place first;
    Place last;
  };
  std::vector<Run> runs;
  for (const Step& step : walk) {
    if (runs.empty() || runs.back().last.plan != step.later.plan) runs.push_back({step.earlier, step.later});
    runs.back().first = step.earlier;
  }
  std::string text;
  for (const Run& run : runs) {
    const Plan& plan = plans_[run.first.plan];
    text += (text.empty() ? "ranks wait for each other: rank " : ", rank ") + std::to_string(plan.rank) + " runs " +
            describe_at(run.first) + " (" + text_of(group_of(plan, at(run.first))) + ") before " +
            describe_at(run.last) + " (" + text_of(group_of(plan, at(run.last))) + ")";
  }
  const Run& here = runs.front();
  const Run& there = runs.back();
  const Plan& wrong = plans_[there.first.plan];
  const Edge missing{there.last.op, there.first.op};
  text += describe(wrong, missing) + " on rank " + std::to_string(wrong.rank);
  hazards_.push_back({HazardKind::collective_deadlock, group_of(plans_[here.last.plan], at(here.last)),
                      plans_[here.last.plan].rank, plans_[there.last.plan].rank, here.last.op, there.last.op, missing,
                      std::move(text)});
}

std::vector<JobHazard> Together::run() {
  for (const auto& [group, sequences] : sequences_) {
    for (std::size_t i = 1; i < sequences.size(); ++i) compare(group, sequences.front(), sequences[i]);
  }
  if (hazards_.empty()) find_deadlock();
  return std::move(hazards_);
}

}  // namespace

std::vector<JobHazard> verify_together(std::span<const Plan> plans) { return Together(plans).run(); }

}  // namespace ebb
