// One arena for all plans of a rank's life (device_layout.hpp).
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "models/errors.hpp"
#include "replay/device_layout.hpp"
#include "replay/device_lives.hpp"

namespace ebb::replay {

namespace {

constexpr int kWholeLife = -1;

/// Parts that may go on in each other share the first one's number.
int segment_of(LifePart part) {
  switch (part) {
    case LifePart::skip:
      return static_cast<int>(LifePart::step);
    case LifePart::first_skip:
      return static_cast<int>(LifePart::first_step);
    default:
      return static_cast<int>(part);
  }
}

/// Names of device buffers that are alive where some part begins or ends.
class Outliving {
 public:
  explicit Outliving(std::span<const Plan* const> plans) {
    for (const Plan* plan : plans) add(*plan);
  }
  bool has(const std::string& name) const { return names_.contains(name); }

 private:
  void add(const Plan& plan) {
    std::vector<bool> alive(plan.buffers.size());
    for (std::size_t b = 0; b < alive.size(); ++b) {
      alive[b] = plan.buffers[b].initial;
      if (alive[b]) note(plan.buffers[b]);
    }
    for (const Op& op : plan.ops) {
      if (op.kind == OpKind::allocate) alive[op.buffer.index] = true;
      if (op.kind == OpKind::release) alive[op.buffer.index] = false;
    }
    for (std::size_t b = 0; b < alive.size(); ++b)
      if (alive[b]) note(plan.buffers[b]);
  }
  void note(const Buffer& buffer) {
    if (buffer.memory == Memory::device) names_.insert(buffer.name);
  }
  std::set<std::string> names_;
};

using Key = std::pair<int, std::string>;  // segment or kWholeLife, name

/// First positions by segment, and behind the last: each has room for its longest plan.
std::array<std::int64_t, kPartCount + 1> begins_of(std::span<const Plan* const> plans) {
  std::array<std::int64_t, kPartCount> lengths{};
  for (const Plan* plan : plans) {
    const auto ops = static_cast<std::int64_t>(plan->ops.size()) + 1;
    std::int64_t& length = lengths[static_cast<std::size_t>(segment_of(plan->part))];
    length = std::max(length, ops);
  }
  std::array<std::int64_t, kPartCount + 1> begins{};
  for (std::size_t s = 0; s < lengths.size(); ++s) begins[s + 1] = begins[s] + lengths[s];
  return begins;
}

}  // namespace

LifeArena place_life(std::span<const Plan* const> plans) {
  EBB_ASSERT(!plans.empty());
  if (plans.size() == 1) {
    memory::Arena arena = place_buffers(*plans[0]);
    return {{std::move(arena.offsets)}, arena.size};
  }
  const Outliving outliving(plans);
  const auto begins = begins_of(plans);
  std::map<Key, std::size_t> slot_of;
  std::vector<memory::ArenaSlot> slots;
  std::vector<std::vector<std::optional<std::size_t>>> used(plans.size());  // slot by plan and buffer
  for (std::size_t p = 0; p < plans.size(); ++p) {
    const Plan& plan = *plans[p];
    const std::vector<DeviceLife> lives = device_lives(plan);
    const std::int64_t begin = begins[static_cast<std::size_t>(segment_of(plan.part))];
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
      const Buffer& buffer = plan.buffers[b];
      used[p].emplace_back();
      if (!lives[b].alive()) continue;
      const bool outlives = outliving.has(buffer.name);
      const Key key{outlives ? kWholeLife : segment_of(plan.part), buffer.name};
      const auto [it, added] = slot_of.emplace(key, slots.size());
      used[p].back() = it->second;
      const std::int64_t first = outlives ? 0 : begin + lives[b].first;
      const std::int64_t last = outlives ? begins.back() : begin + lives[b].last;
      if (added) slots.push_back({{0}, first, last});
      memory::ArenaSlot& slot = slots[it->second];
      slot.bytes = std::max(slot.bytes, buffer.bytes);
      slot.first_use = std::min(slot.first_use, first);
      slot.last_use = std::max(slot.last_use, last);
    }
  }
  const memory::Arena arena = memory::place_in_arena(slots);
  LifeArena result{{}, arena.size};
  for (std::size_t p = 0; p < plans.size(); ++p) {
    std::vector<Bytes>& offsets = result.offsets.emplace_back();
    for (const std::optional<std::size_t>& slot : used[p]) offsets.push_back(slot ? arena.offsets[*slot] : Bytes{0});
  }
  return result;
}

}  // namespace ebb::replay
