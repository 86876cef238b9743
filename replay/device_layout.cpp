// One arena for a plan, or for all plans of a rank's life (device_layout.hpp).
#include "replay/device_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "models/errors.hpp"
#include "replay/device_lives.hpp"

namespace ebb::replay {

namespace {

/// Parts whose buffers are the same by name, as one may go on in the midst of the other: the number of the first.
int family_of(LifePart part) {
  switch (part) {
    case LifePart::skip:
      return static_cast<int>(LifePart::step);
    case LifePart::first_skip:
      return static_cast<int>(LifePart::first_step);
    default:
      return static_cast<int>(part);
  }
}
constexpr int kWholeLife = -1;

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

using Key = std::pair<int, std::string>;  // family or kWholeLife, name

/// InputError where a life begins before the storage of the last one is free.
void require_apart(const Plan& plan, const Buffer& buffer, const std::vector<DeviceLife>& lives) {
  for (std::size_t l = 1; l < lives.size(); ++l) {
    if (lives[l].first > lives[l - 1].last) continue;
    throw InputError({},
                     fmt::format("rank {}, {}: buffer \"{}\" is allocated again while an op may still work on what it "
                                 "was before",
                                 plan.rank, name_of(plan.part), buffer.name),
                     "let the allocation depend on that op");
  }
}

/// Adds the lives that the buffer has in a segment that begins at `begin`.
void add_lives(memory::ArenaSlot& slot, const Buffer& buffer, const std::vector<DeviceLife>& lives,
               std::int64_t begin) {
  slot.bytes = std::max(slot.bytes, buffer.bytes);
  slot.yields |= buffer.packed;  // Ebb's own policies move it out of the way of activations
  for (const DeviceLife& life : lives) slot.lives.push_back({begin + life.first, begin + life.last});
}

}  // namespace

memory::Arena place_buffers(const Plan& plan) {
  const std::vector<std::vector<DeviceLife>> lives = device_lives(plan);
  std::vector<memory::ArenaSlot> slots(plan.buffers.size());
  for (std::size_t b = 0; b < slots.size(); ++b) {
    require_apart(plan, plan.buffers[b], lives[b]);
    add_lives(slots[b], plan.buffers[b], lives[b], 0);
  }
  return memory::place_in_arena(slots);
}

LifeArena place_life(std::span<const Plan* const> plans) {
  EBB_ASSERT(!plans.empty());
  if (plans.size() == 1) {
    memory::Arena arena = place_buffers(*plans[0]);
    return {{std::move(arena.offsets)}, arena.size, arena.max_live};
  }
  const Outliving outliving(plans);
  std::map<Key, std::size_t> slot_of;
  std::vector<memory::ArenaSlot> slots;
  std::vector<std::vector<std::optional<std::size_t>>> used(plans.size());  // slot by plan and buffer
  std::int64_t begin = 0;                                                   // of the plan's segment
  for (std::size_t p = 0; p < plans.size(); ++p) {
    const Plan& plan = *plans[p];
    const std::vector<std::vector<DeviceLife>> lives = device_lives(plan);
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
      const Buffer& buffer = plan.buffers[b];
      used[p].emplace_back();
      if (lives[b].empty()) continue;
      require_apart(plan, buffer, lives[b]);
      const Key key{outliving.has(buffer.name) ? kWholeLife : family_of(plan.part), buffer.name};
      const auto [it, added] = slot_of.emplace(key, slots.size());
      used[p].back() = it->second;
      if (added) slots.emplace_back();
      add_lives(slots[it->second], buffer, lives[b], begin);
    }
    begin += static_cast<std::int64_t>(plan.ops.size()) + 1;
  }
  const memory::Arena arena = memory::place_in_arena(slots);
  LifeArena result{{}, arena.size, arena.max_live};
  for (std::size_t p = 0; p < plans.size(); ++p) {
    std::vector<Bytes>& offsets = result.offsets.emplace_back();
    for (const std::optional<std::size_t>& slot : used[p]) offsets.push_back(slot ? arena.offsets[*slot] : Bytes{0});
  }
  return result;
}

}  // namespace ebb::replay
