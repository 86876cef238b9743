#include "sim/fabric.hpp"

#include <algorithm>

#include "models/errors.hpp"

namespace ebb::sim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double per_tick(BytesPerSecond rate) { return rate.value / static_cast<double>(kTicksPerSecond); }

}  // namespace

void Fabric::build(const Cluster& cluster, std::span<const std::uint32_t> class_of_place, std::size_t classes,
                   std::span<const GroupShape> groups) {
  EBB_ASSERT(!class_of_place.empty() && classes > 0);
  classes_ = classes;
  read_figures(cluster, groups);
  occupy(cluster, class_of_place);
  rows_.clear();
  loads_.clear();
  add_rows(cluster);

  system_.clear();
  for (const Row& row : rows_) system_.add_link(row.capacity);
  own_.clear();
  in_system_.clear();
  alone_.clear();
  for (std::size_t cls = 0; cls < classes; ++cls) add_class(cls, cluster.host_link);
  add_groups(groups);
  EBB_ASSERT(alone_.size() < kNoFlow);
  find_components(groups);
}

void Fabric::read_figures(const Cluster& cluster, std::span<const GroupShape> groups) {
  const HostLink& link = cluster.host_link;
  sizes_.clear();
  size_loads_.clear();
  for (const SizedRate& size : link.both_by_size.value) {
    EBB_ASSERT(size.rate.value > 0);
    sizes_.push_back(size.bytes);
    size_loads_.push_back(link.both.value.value / size.rate.value);
  }
  if (sizes_.empty()) size_loads_.push_back(1.0);
  copy_flows_ = size_loads_.size() + 1;
  flows_per_class_ = kDirections * copy_flows_ + 3;

  hbm_ = per_tick(cluster.gpu.hbm.value);
  kernel_rates_[static_cast<std::size_t>(Rate::adam)] = per_tick(cluster.gpu.adam.value);
  kernel_rates_[static_cast<std::size_t>(Rate::adam_foreach)] = per_tick(cluster.gpu.adam_foreach.value);
  kernel_rates_[static_cast<std::size_t>(Rate::hbm)] = hbm_;
  interference_ = cluster.interconnect.copy_interference.value;
  const double copies = std::min(per_tick(link.h2d.value) + per_tick(link.d2h.value), per_tick(link.both.value));
  busiest_ = copies;
  for (const GroupShape& group : groups) busiest_ = std::max(busiest_, copies + kHbmPerWireByte * group.wire);
}

/// How many places of each class there are, in all and behind each switch and socket.
void Fabric::occupy(const Cluster& cluster, std::span<const std::uint32_t> class_of_place) {
  const auto places = static_cast<std::int64_t>(class_of_place.size());
  const std::int64_t in_switch = cluster.topology.gpus_per_switch;
  const std::int64_t sockets = cluster.host.sockets;
  EBB_ASSERT(in_switch > 0 && sockets > 0);
  counts_.assign(classes_, 0);
  in_switch_.assign(static_cast<std::size_t>(ceil_div(places, in_switch)) * classes_, 0);
  in_socket_.assign(static_cast<std::size_t>(sockets) * classes_, 0);
  for (std::int64_t place = 0; place < places; ++place) {
    const std::size_t cls = class_of_place[static_cast<std::size_t>(place)];
    EBB_ASSERT(cls < classes_);
    ++counts_[cls];
    ++in_switch_[static_cast<std::size_t>(place / in_switch) * classes_ + cls];
    ++in_socket_[static_cast<std::size_t>(socket_of(cluster, place)) * classes_ + cls];
  }
  for (const double count : counts_) EBB_ASSERT(count > 0);
}

/// A limit that several GPUs share. load(class, direction): what a unit of the class's rate loads it with. Without a
/// finite capacity or any load there is no such limit.
template <class Load>
void Fabric::add_row(double capacity, Load load) {
  EBB_ASSERT(capacity > 0);
  if (capacity == kInfinity) return;
  const std::size_t begin = loads_.size();
  bool used = false;
  for (std::size_t cls = 0; cls < classes_; ++cls) {
    for (const Direction d : {Direction::h2d, Direction::d2h}) {
      loads_.push_back(load(cls, d));
      used |= loads_.back() > 0;
    }
  }
  if (used)
    rows_.push_back({capacity, begin});
  else
    loads_.resize(begin);
}

void Fabric::add_rows(const Cluster& cluster) {
  const Topology& t = cluster.topology;
  const auto one_way = [&](double capacity, const double* counts) {
    for (const Direction way : {Direction::h2d, Direction::d2h})
      add_row(capacity, [&](std::size_t cls, Direction d) { return d == way ? counts[cls] : 0.0; });
  };
  const auto both = [&](double capacity, const double* counts) {
    add_row(capacity, [&](std::size_t cls, Direction) { return counts[cls]; });
  };
  for (std::size_t s = 0; s < in_switch_.size(); s += classes_) {
    one_way(per_tick(t.switch_one_way.value), &in_switch_[s]);
    both(per_tick(t.switch_both.value), &in_switch_[s]);
  }
  const std::size_t sockets = in_socket_.size() / classes_;
  const double remote = sockets > 1 ? t.remote_memory.value : 0.0;
  const double each_remote = sockets > 1 ? remote / static_cast<double>(sockets - 1) : 0.0;
  for (std::size_t s = 0; s < in_socket_.size(); s += classes_) {
    const double* near = &in_socket_[s];
    const auto far = [&](std::size_t cls) { return (counts_[cls] - near[cls]) * each_remote; };
    one_way(per_tick(t.socket_one_way.value), near);
    both(per_tick(t.socket_both.value), near);
    add_row(per_tick(t.socket_memory.value),
            [&](std::size_t cls, Direction) { return near[cls] * (1 - remote) + far(cls); });
    // Into this socket: what its GPUs read from afar, and what the others' write here. Out of it: the reverse.
    for (const Direction into : {Direction::h2d, Direction::d2h})
      add_row(per_tick(t.inter_socket.value),
              [&](std::size_t cls, Direction d) { return d == into ? near[cls] * remote : far(cls); });
  }
  one_way(per_tick(cluster.host_link.host_one_way.value), counts_.data());
  both(per_tick(cluster.host_link.host_both.value), counts_.data());
}

void Fabric::add_class(std::size_t cls, const HostLink& link) {
  const double limits[] = {per_tick(link.h2d.value), per_tick(link.d2h.value), per_tick(link.both.value)};
  for (const double limit : limits) {
    EBB_ASSERT(limit > 0);
    own_.push_back(system_.add_link(limit));
  }
  const std::uint32_t* own = &own_[cls * kOwnLinks];
  for (std::size_t d = 0; d < kDirections; ++d) {
    for (std::size_t variant = 0; variant < copy_flows_; ++variant) {
      const bool pageable = variant + 1 == copy_flows_;
      uses_.clear();
      uses_.push_back({own[d], 1.0});
      uses_.push_back({own[kOwnBoth], pageable ? 1.0 : size_loads_[variant]});
      for (std::uint32_t row = 0; row < rows_.size(); ++row) {
        const double times = loads_[rows_[row].loads + cls * kDirections + d];
        if (times > 0) uses_.push_back({row, times});
      }
      const double pageable_cap = per_tick((d == 0 ? link.pageable_h2d : link.pageable_d2h).value);
      const double cap = pageable ? pageable_cap : kInfinity;
      in_system_.push_back(system_.add_flow(uses_, d == 0 ? 1.0 : link.d2h_weight.value, cap));
      alone_.push_back(std::min(limits[d], cap));
    }
  }
  for (const double rate : kernel_rates_) {
    in_system_.push_back(kNone);
    alone_.push_back(rate);
  }
}

void Fabric::add_groups(std::span<const GroupShape> groups) {
  groups_.assign(groups.begin(), groups.end());
  groups_of_.resize(std::max(groups_of_.size(), classes_));
  for (auto& of_class : groups_of_) of_class.clear();
  for (std::uint32_t g = 0; g < groups.size(); ++g)
    for (const std::uint32_t cls : groups[g].classes) groups_of_[cls].push_back(g);
  for (const GroupShape& group : groups) {
    EBB_ASSERT(!group.classes.empty());
    alone_.push_back(group.wire);
    in_system_.push_back(kNone);
    if (group.host_link == 0) continue;
    alone_.back() = group.host_link;
    uses_.clear();
    for (const std::uint32_t cls : group.classes) {
      const std::uint32_t* own = &own_[cls * kOwnLinks];
      uses_.push_back({own[kOwnH2d], 1.0});
      uses_.push_back({own[kOwnD2h], 1.0});
      uses_.push_back({own[kOwnBoth], 2.0});
    }
    in_system_.back() = system_.add_flow(uses_, 1.0, group.host_link);
  }
}

/// Classes that load one limit, or meet in a group, belong together.
void Fabric::find_components(std::span<const GroupShape> groups) {
  parent_.resize(classes_);
  for (std::uint32_t c = 0; c < classes_; ++c) parent_[c] = c;
  const auto root = [&](std::uint32_t c) {
    while (parent_[c] != c) c = parent_[c] = parent_[parent_[c]];
    return c;
  };
  for (const Row& row : rows_) {
    std::uint32_t first = kNone;
    for (std::uint32_t c = 0; c < classes_; ++c) {
      if (loads_[row.loads + c * kDirections] == 0 && loads_[row.loads + c * kDirections + 1] == 0) continue;
      if (first == kNone) first = c;
      parent_[root(c)] = root(first);
    }
  }
  for (const GroupShape& group : groups)
    for (const std::uint32_t c : group.classes) parent_[root(c)] = root(group.classes.front());

  lane_component_.assign(3 * classes_ + groups.size(), 0);
  std::uint32_t count = 0;
  for (std::uint32_t c = 0; c < classes_; ++c)
    if (root(c) == c) lane_component_[3 * c] = count++;
  lane_index_.resize(lane_component_.size());
  component_lanes_.resize(count);
  for (auto& lanes : component_lanes_) lanes.clear();
  for (std::uint32_t lane = 0; lane < lane_component_.size(); ++lane) {
    const std::uint32_t cls = lane < 3 * classes_ ? lane / 3 : groups[lane - 3 * classes_].classes.front();
    const std::uint32_t component = lane_component_[3 * root(cls)];
    component_lanes_[component].push_back(lane);
  }
  for (std::uint32_t component = 0; component < count; ++component)
    for (std::uint32_t i = 0; i < component_lanes_[component].size(); ++i) {
      lane_component_[component_lanes_[component][i]] = component;
      lane_index_[component_lanes_[component][i]] = i;
    }
}

}  // namespace ebb::sim
