// The critical path of a timed plan, by Boost.Graph: the longest chain through the dependency graph, an op weighing the
// time it took. An op starts when the last of its predecessors has ended, or when the host thread has issued it: what
// the chain is shorter than the step is time in which the device waited for the host.
#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dag_shortest_paths.hpp>

#include "models/errors.hpp"
#include "planner/verify.hpp"

namespace ebb {

namespace {

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property,
                                    boost::property<boost::edge_weight_t, std::int64_t>>;

/// Vertex i is op i, vertex n the start. An edge weighs minus the duration of the op it leads to: the shortest path is
/// the longest chain. Only ops without predecessors hang on the start.
Graph graph_of(const Plan& plan, const Timeline& timeline) {
  const std::size_t n = plan.ops.size();
  Graph graph(n + 1);
  std::vector<OpId> last_on_stream(plan.streams.size(), OpId::none());
  for (std::uint32_t i = 0; i < n; ++i) {
    const Op& op = plan.ops[i];
    const std::int64_t weight = timeline.start[i].value - timeline.end[i].value;
    OpId& previous = last_on_stream[op.stream.index];
    if (previous.valid()) boost::add_edge(previous.index, i, weight, graph);
    for (const OpId dep : plan.deps_of(op)) boost::add_edge(dep.index, i, weight, graph);
    if (!previous.valid() && op.deps_count == 0) boost::add_edge(n, i, weight, graph);
    previous = {i};
  }
  return graph;
}

}  // namespace

std::vector<OpId> critical_path(const Plan& plan, const Timeline& timeline) {
  const std::size_t n = plan.ops.size();
  EBB_ASSERT(timeline.start.size() == n && timeline.end.size() == n);
  if (n == 0) return {};
  const Graph graph = graph_of(plan, timeline);
  std::vector<std::int64_t> distance(n + 1);
  std::vector<std::size_t> parent(n + 1);
  boost::dag_shortest_paths(graph, n, boost::distance_map(distance.data()).predecessor_map(parent.data()));

  const auto last = std::min_element(distance.begin(), distance.end() - 1);
  std::vector<OpId> chain;
  for (auto at = static_cast<std::size_t>(last - distance.begin()); at != n; at = parent[at]) {
    chain.push_back({static_cast<std::uint32_t>(at)});
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

}  // namespace ebb
