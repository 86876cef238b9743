#include "planner/robust.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "models/quantity_text.hpp"
#include "planner/set_value.hpp"

namespace ebb {

namespace {

constexpr double kMeasured = 0.95;
constexpr double kNotMeasured = 0.73;
constexpr std::int64_t kFreePercent = 5;

class Rates {
 public:
  void lower(std::string_view name, Sourced<BytesPerSecond>& rate) {
    if (std::isfinite(rate.value.value)) rate.value.value *= factor_of(name, rate.source);
  }
  void lower(std::string_view name, Sourced<std::vector<SizedRate>>& rates) {
    if (rates.value.empty()) return;
    const double factor = factor_of(name, rates.source);
    for (SizedRate& point : rates.value) point.rate.value *= factor;
  }
  std::string not_measured() const { return not_measured_; }

 private:
  double factor_of(std::string_view name, const std::string& source) {
    if (source == kSetSource) return 1;
    if (is_measured(source)) return kMeasured;
    not_measured_.append(not_measured_.empty() ? "" : ", ").append(name);
    return kNotMeasured;
  }

  std::string not_measured_;
};

/// Both directions are never faster than each alone (models/cluster_yaml.cpp).
void cap_both(HostLink& link) {
  const BytesPerSecond most = link.h2d.value + link.d2h.value;
  link.both.value = std::min(link.both.value, most);
  for (SizedRate& point : link.both_by_size.value) point.rate = std::min(point.rate, most);
}

}  // namespace

bool is_measured(const std::string& source) {
  return (source.starts_with("measured") || source.starts_with("default: measured")) &&
         source.find("scaled") == std::string::npos && source.find("times") == std::string::npos;
}

Job at_its_worst(const Job& job, std::vector<std::string>& assumptions) {
  Job worst = job;
  if (job.checkpoint.start == Start::fresh) {
    worst.checkpoint.start = Start::resume;
    assumptions.emplace_back("the run is resumed one day: the load of a checkpoint with optimizer state counts");
  }
  Rates rates;
  HostLink& link = worst.cluster.host_link;
  rates.lower("h2d", link.h2d);
  rates.lower("d2h", link.d2h);
  rates.lower("both", link.both);
  rates.lower("both_by_size", link.both_by_size);
  rates.lower("host_one_way", link.host_one_way);
  rates.lower("host_both", link.host_both);
  rates.lower("pageable_h2d", link.pageable_h2d);
  rates.lower("pageable_d2h", link.pageable_d2h);
  Topology& topology = worst.cluster.topology;
  rates.lower("switch_one_way", topology.switch_one_way);
  rates.lower("switch_both", topology.switch_both);
  rates.lower("socket_one_way", topology.socket_one_way);
  rates.lower("socket_both", topology.socket_both);
  rates.lower("socket_memory", topology.socket_memory);
  rates.lower("inter_socket", topology.inter_socket);
  rates.lower("cpu_adam", worst.cluster.host.cpu_adam);
  cap_both(link);
  assumptions.push_back(fmt::format("host links at {:.0f} % of what was measured", kMeasured * 100));
  if (!rates.not_measured().empty())
    assumptions.push_back(fmt::format("{} at {:.0f} %: not measured", rates.not_measured(), kNotMeasured * 100));
  Bytes& memory = worst.cluster.host.memory.value;
  memory = Bytes{memory.value / 100 * (100 - kFreePercent)};
  if (worst.budget.host) worst.budget.host = std::min(*worst.budget.host, memory);
  assumptions.push_back(fmt::format("{} % of the host's memory stay free", kFreePercent));
  return worst;
}

}  // namespace ebb
