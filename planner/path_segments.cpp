#include "planner/path_segments.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "models/errors.hpp"

namespace ebb {

std::string_view name_of(Resource resource) {
  switch (resource) {
    case Resource::compute:
      return "compute";
    case Resource::link:
      return "link";
    case Resource::device_memory:
      return "device memory";
    case Resource::collectives:
      return "collectives";
    case Resource::host:
      return "host";
  }
  return "";
}

Resource resource_of(const Op& op) {
  switch (op.kind) {
    case OpKind::compute:
      return Resource::compute;
    case OpKind::copy_h2d:
    case OpKind::copy_d2h:
      return Resource::link;
    case OpKind::kernel:
      return Resource::device_memory;
    case OpKind::collective:
      return Resource::collectives;
    case OpKind::allocate:
    case OpKind::release:
    case OpKind::host_work:
    case OpKind::host_wait:
      return Resource::host;
  }
  return Resource::host;
}

namespace {

std::string kernel_name(Work work) {
  switch (work) {
    case Work::adam:
    case Work::adam_foreach:
      return "Adam";
    case Work::cast:
      return "cast to parameters";
    case Work::grad_norm:
      return "gradient norm";
    case Work::clip:
      return "clipping";
    case Work::zero_grads:
      return "zeroing gradients";
    default:
      return "kernels";
  }
}

std::string collective_name(const Op& op) {
  const std::string of = (op.states & kParams) != 0 ? "parameter " : (op.states & kGrads) != 0 ? "gradient " : "";
  switch (op.work) {
    case Work::all_gather:
      return of + "all-gather";
    case Work::reduce_scatter:
      return of + "reduce-scatter";
    case Work::all_reduce:
      return of + "all-reduce";
    case Work::all_to_all:
      return of + "all-to-all";
    default:
      return of + "collective";
  }
}

std::string host_name(Work work) {
  switch (work) {
    case Work::cpu_adam:
      return "Adam on the host";
    case Work::chunk_overhead:
    case Work::tensor_scan:
      return "the framework's work a chunk";
    default:
      return "host work";
  }
}

}  // namespace

std::string what_of(const Op& op) {
  switch (op.kind) {
    case OpKind::compute:
      return "computation";
    case OpKind::copy_h2d:
      return "copies to the device";
    case OpKind::copy_d2h:
      return "copies to the host";
    case OpKind::kernel:
      return kernel_name(op.work);
    case OpKind::collective:
      return collective_name(op);
    case OpKind::host_work:
      return host_name(op.work);
    case OpKind::host_wait:
      return "host synchronisation";
    case OpKind::allocate:
    case OpKind::release:
      return "allocation";
  }
  return "";
}

namespace {

Resource resource_waited_for(const PathOp& step) {
  return step.wait == Wait::peers ? Resource::collectives : Resource::host;
}

/// Segments by what they have in common.
class Folding {
 public:
  explicit Folding(const Plan& plan) : plan_(plan) {}

  void add(const PathOp& step) {
    const Op& op = plan_.ops[step.op.index];
    const std::string phase(ebb::name_of(op.phase));
    if (step.waited > Ticks{0}) {
      const bool peers = step.wait == Wait::peers;
      Segment& waiting = at({phase, peers ? "waiting for other ranks" : "waiting for the host to issue", ""});
      waiting.resource = resource_waited_for(step);
      waiting.wait = step.wait;
      waiting.time += step.waited;
    }
    if (step.end == step.start) return;
    Segment& segment = at({phase, what_of(op), plan_.streams[op.stream.index].name});
    segment.resource = resource_of(op);
    ++segment.operations;
    segment.time += step.end - step.start;
    ++waits_[{&segment - segments_.data(), step.wait}];
  }

  std::vector<Segment> result() {
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      std::int64_t most = 0;
      for (const auto& [key, count] : waits_) {
        if (key.first != static_cast<std::ptrdiff_t>(i) || count <= most) continue;
        most = count;
        segments_[i].wait = key.second;
      }
    }
    return std::move(segments_);
  }

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // phase, what, stream

  Segment& at(const Key& key) {
    const auto [known, is_new] = known_.emplace(key, segments_.size());
    if (is_new) {
      Segment segment;
      std::tie(segment.phase, segment.what, segment.stream) = key;
      segments_.push_back(std::move(segment));
    }
    return segments_[known->second];
  }

  const Plan& plan_;
  std::vector<Segment> segments_;
  std::map<Key, std::size_t> known_;
  std::map<std::pair<std::ptrdiff_t, Wait>, std::int64_t> waits_;
};

/// Segments in the order of their time, the shortest two to the front of the result.
std::pair<std::size_t, std::size_t> shortest_two(const std::vector<Segment>& segments) {
  std::vector<std::size_t> order(segments.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return segments[a].time < segments[b].time; });
  return std::minmax(order[0], order[1]);
}

/// The later into the earlier.
void merge(std::vector<Segment>& segments, std::size_t earlier, std::size_t later) {
  Segment& into = segments[earlier];
  const Segment& from = segments[later];
  if (into.phase != from.phase) into.phase = "several";
  if (into.stream != from.stream) into.stream.clear();
  into.what = "other, briefly";
  into.operations += from.operations;
  into.time += from.time;
  into.wait = Wait::nothing;
  segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(later));
}

}  // namespace

std::vector<Segment> segments_of(const Plan& plan, const std::vector<PathOp>& path, std::size_t most) {
  EBB_ASSERT(most >= 1);
  constexpr std::int64_t kBrief = 2000;  // of the path: 0.05 %
  Folding folding(plan);
  Ticks sum{0};
  for (const PathOp& step : path) {
    folding.add(step);
    sum += step.time();
  }
  std::vector<Segment> segments = folding.result();
  while (segments.size() >= 2) {
    const auto [earlier, later] = shortest_two(segments);
    const Ticks longer = std::max(segments[earlier].time, segments[later].time);
    if (segments.size() <= most && longer.value > sum.value / kBrief) break;
    merge(segments, earlier, later);
  }
  return segments;
}

std::array<Ticks, kResources.size()> by_resource(const Plan& plan, const std::vector<PathOp>& path) {
  std::array<Ticks, kResources.size()> times{};
  for (const PathOp& step : path) {
    times[static_cast<std::size_t>(resource_of(plan.ops[step.op.index]))] += step.end - step.start;
    times[static_cast<std::size_t>(resource_waited_for(step))] += step.waited;
  }
  return times;
}

std::vector<std::int64_t> thousandths_of(const std::vector<Segment>& segments) {
  double sum = 0;
  for (const Segment& segment : segments) sum += static_cast<double>(segment.time.value);
  std::vector<std::int64_t> shares;
  std::vector<double> remainders;
  for (const Segment& segment : segments) {
    const double exact = sum > 0 ? static_cast<double>(segment.time.value) / sum * 1000 : 0;
    shares.push_back(static_cast<std::int64_t>(exact));
    remainders.push_back(exact - static_cast<double>(shares.back()));
  }
  std::vector<std::size_t> order(segments.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  const std::int64_t left = sum > 0 ? 1000 - std::accumulate(shares.begin(), shares.end(), std::int64_t{0}) : 0;
  for (std::int64_t i = 0; i < left; ++i) ++shares[order[static_cast<std::size_t>(i) % order.size()]];
  return shares;
}

}  // namespace ebb
