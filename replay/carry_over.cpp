#include "replay/carry_over.hpp"

#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>

#include "models/errors.hpp"

namespace ebb::replay {

namespace {

constexpr const char* kCure = "write the plans of all parts again, with one ebb";

[[noreturn]] void reject(const Plan& last, const Plan& next, const std::string& problem) {
  throw InputError(
      {}, fmt::format("rank {}, from {} to {}: {}", next.rank, name_of(last.part), name_of(next.part), problem), kCure);
}

}  // namespace

std::vector<BufferId> carry_over(const Plan& last, const std::vector<bool>& alive, const Plan& next, Carry when) {
  EBB_ASSERT(alive.size() == last.buffers.size());
  std::map<std::string_view, std::uint32_t> by_name;
  for (std::uint32_t b = 0; b < next.buffers.size(); ++b) {
    if (next.buffers[b].memory == Memory::device) by_name.emplace(next.buffers[b].name, b);
  }
  std::vector<BufferId> from(next.buffers.size());
  for (std::uint32_t b = 0; b < alive.size(); ++b) {
    if (!alive[b]) continue;
    const Buffer& buffer = last.buffers[b];
    const auto found = by_name.find(buffer.name);
    if (found == by_name.end()) reject(last, next, fmt::format("buffer \"{}\" is alive and not known", buffer.name));
    const Buffer& there = next.buffers[found->second];
    if (there.bytes != buffer.bytes) {
      reject(last, next,
             fmt::format("buffer \"{}\" has {} B and then {} B", buffer.name, buffer.bytes.value, there.bytes.value));
    }
    if (when == Carry::between_parts && !there.initial)
      reject(last, next, fmt::format("buffer \"{}\" is alive and not expected", buffer.name));
    from[found->second] = {b};
  }
  for (std::uint32_t b = 0; when == Carry::between_parts && b < from.size(); ++b) {
    const Buffer& buffer = next.buffers[b];
    if (buffer.initial && buffer.memory == Memory::device && !from[b].valid())
      reject(last, next, fmt::format("buffer \"{}\" should be alive", buffer.name));
  }
  return from;
}

}  // namespace ebb::replay
