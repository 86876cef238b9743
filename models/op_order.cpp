#include "models/op_order.hpp"

#include <algorithm>

#include "models/errors.hpp"

namespace ebb {

Order::Order(std::size_t streams) : streams_(streams), last_(streams, OpId::none()) { EBB_ASSERT(streams > 0); }

Order::Order(const Plan& plan) : Order(std::max<std::size_t>(plan.streams.size(), 1)) {
  reserve(plan.ops.size());
  stream_of_.reserve(plan.ops.size());
  std::vector<OpId> earlier;
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    earlier.clear();
    for (const OpId dep : plan.deps_of(plan.ops[i])) {
      if (dep.index < i) earlier.push_back(dep);
    }
    append(plan.ops[i].stream, earlier);
  }
}

OpId Order::append(StreamId stream, std::span<const OpId> deps) {
  EBB_ASSERT(stream.index < streams_);
  const OpId op{static_cast<std::uint32_t>(stream_of_.size())};
  clocks_.resize(clocks_.size() + streams_, 0);
  std::uint32_t* mine = clocks_.data() + std::size_t{op.index} * streams_;
  const auto join = [&](OpId earlier) {
    const std::uint32_t* theirs = clock(earlier);
    for (std::size_t s = 0; s < streams_; ++s) mine[s] = std::max(mine[s], theirs[s]);
  };
  if (last_[stream.index].valid()) join(last_[stream.index]);
  for (const OpId dep : deps) join(dep);
  ++mine[stream.index];
  stream_of_.push_back(stream.index);
  last_[stream.index] = op;
  return op;
}

}  // namespace ebb
