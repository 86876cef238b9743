// The arithmetic of stand-ins; what needs a device is in stand_in.cpp.
#include "models/errors.hpp"
#include "replay/stand_in.hpp"

namespace ebb::replay {

std::vector<GemmCount> fill_time(Ticks left, std::span<const GemmTime> times) {
  std::vector<GemmCount> result;
  for (std::size_t i = 0; i < times.size() && left.value > 0; ++i) {
    const std::int64_t time = times[i].time.value;
    EBB_ASSERT(time > 0 && (i == 0 || time <= times[i - 1].time.value));
    const bool last = i + 1 == times.size();
    const std::int64_t count = (left.value + (last ? time / 2 : 0)) / time;
    if (count > 0) result.push_back({times[i].size, count});
    left.value -= count * time;
  }
  return result;
}

ByteRange share_of(Bytes bytes, ElementRange range, Numel whole) {
  if (whole.value <= 0) return {};
  // 128 bits: bytes * elements overflows 64 from a few GiB on.
  const auto until = [&](std::int64_t element) {
    __extension__ using Wide = __int128;
    return static_cast<std::int64_t>(static_cast<Wide>(bytes.value) * element / whole.value);
  };
  const std::int64_t at = until(range.begin);
  return {{at}, {until(range.end) - at}};
}

}  // namespace ebb::replay
