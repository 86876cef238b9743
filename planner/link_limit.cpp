#include "planner/link_limit.hpp"

#include <array>

#include "sim/copy_rates.hpp"

namespace ebb {

namespace {

using Rate = Sourced<BytesPerSecond>;

struct Figure {
  const char* key;
  Rate& (*of)(Cluster& cluster);
};

/// From the GPU's own link to what the whole host shares: of figures that bind together the first is named.
constexpr std::array<Figure, 12> kFigures = {{
    {"host_link.h2d", [](Cluster& c) -> Rate& { return c.host_link.h2d; }},
    {"host_link.d2h", [](Cluster& c) -> Rate& { return c.host_link.d2h; }},
    {"host_link.both", [](Cluster& c) -> Rate& { return c.host_link.both; }},
    {"topology.switch_one_way", [](Cluster& c) -> Rate& { return c.topology.switch_one_way; }},
    {"topology.switch_both", [](Cluster& c) -> Rate& { return c.topology.switch_both; }},
    {"topology.socket_one_way", [](Cluster& c) -> Rate& { return c.topology.socket_one_way; }},
    {"topology.socket_both", [](Cluster& c) -> Rate& { return c.topology.socket_both; }},
    {"topology.socket_memory", [](Cluster& c) -> Rate& { return c.topology.socket_memory; }},
    {"topology.inter_socket", [](Cluster& c) -> Rate& { return c.topology.inter_socket; }},
    {"host_link.host_one_way", [](Cluster& c) -> Rate& { return c.host_link.host_one_way; }},
    {"host_link.host_both", [](Cluster& c) -> Rate& { return c.host_link.host_both; }},
    {"gpu.hbm", [](Cluster& c) -> Rate& { return c.gpu.hbm; }},
}};

constexpr double kLess = 1e-3;

BytesPerSecond rate_of(const Cluster& cluster, std::int64_t ranks, LinkUse use) {
  const sim::CopyRates rates = sim::copy_rates(cluster, {.ranks_per_host = ranks});
  switch (use) {
    case LinkUse::to_device:
      return rates.h2d;
    case LinkUse::to_host:
      return rates.d2h;
    case LinkUse::both_ways:
      return rates.both;
  }
  return {};
}

}  // namespace

LinkLimit link_limit(const Cluster& cluster, std::int64_t ranks_per_host, LinkUse use) {
  const BytesPerSecond rate = rate_of(cluster, ranks_per_host, use);
  const auto binds = [&](const Cluster& slower) {
    return rate_of(slower, ranks_per_host, use).value < rate.value * (1 - kLess / 10);
  };
  // The rate by size of copy is a figure of its own, a list.
  if (use == LinkUse::both_ways && !cluster.host_link.both_by_size.value.empty()) {
    Cluster slower = cluster;
    for (SizedRate& point : slower.host_link.both_by_size.value) point.rate.value *= 1 - kLess;
    if (binds(slower)) return {rate, "host_link.both_by_size", cluster.host_link.both_by_size.source};
  }
  for (const Figure& figure : kFigures) {
    Cluster slower = cluster;
    figure.of(slower).value.value *= 1 - kLess;
    if (binds(slower)) return {rate, figure.key, figure.of(slower).source};
  }
  return {rate, "host_link", "no single figure decides"};
}

}  // namespace ebb
