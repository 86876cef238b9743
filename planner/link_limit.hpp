// Which of a cluster's figures decides how fast copies between host and device run while all ranks of a host copy
// alike: the first whose reduction by a thousandth lowers the rate (sim/copy_rates.hpp solves the host), so that
// nothing is known twice.
#pragma once

#include <cstdint>
#include <string>

#include "models/cluster.hpp"

namespace ebb {

enum class LinkUse : std::uint8_t { to_device, to_host, both_ways };

struct LinkLimit {
  BytesPerSecond rate;  // of one rank; both_ways: the sum
  std::string figure;   // the key in the cluster file
  std::string source;   // of its value
};

/// Preconditions: as of sim::copy_rates.
LinkLimit link_limit(const Cluster& cluster, std::int64_t ranks_per_host, LinkUse use);

}  // namespace ebb
