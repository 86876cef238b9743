// The path of a step (step_path.hpp) as a list that can be read: operations of one phase, kind and stream together, and
// what each kind of operation is bound by.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/step_path.hpp"

namespace ebb {

/// What an operation keeps busy.
enum class Resource : std::uint8_t { compute, link, device_memory, collectives, host };
inline constexpr std::array kResources = {Resource::compute, Resource::link, Resource::device_memory,
                                          Resource::collectives, Resource::host};
std::string_view name_of(Resource resource);

Resource resource_of(const Op& op);
/// "Adam", "copies to the device", "gradient reduce-scatter" and the like.
std::string what_of(const Op& op);

struct Segment {
  std::string phase;
  std::string what;
  std::string stream;
  Resource resource = Resource::compute;
  Wait wait = Wait::nothing;    // of most of its operations
  std::int64_t operations = 0;  // 0: waiting
  Ticks time{0};
};

/// In order of first appearance, at most `most` (>= 1): the shortest are put together until there are no more, and none
/// but one is shorter than 0.05 % of the path. Their times add up to the path's. Time in which an operation waited is a
/// segment of its own: for the host thread to issue, or for other ranks.
std::vector<Segment> segments_of(const Plan& plan, const std::vector<PathOp>& path, std::size_t most);

/// Time on the path by resource, in the order of kResources; waiting for the host thread is the host's, waiting for
/// other ranks the collectives'.
std::array<Ticks, kResources.size()> by_resource(const Plan& plan, const std::vector<PathOp>& path);

/// Shares of the sum in tenths of a percent that add up to 1000: the largest remainders are rounded up.
std::vector<std::int64_t> thousandths_of(const std::vector<Segment>& segments);

}  // namespace ebb
