// The arithmetic of stand-ins; what needs a device is in stand_in.cpp.
#include <algorithm>

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

Ticks corrected(Ticks left, Ticks planned, Ticks measured, Ticks others) {
  const double wanted = static_cast<double>((planned - others).value);
  const double took = static_cast<double>((measured - others).value);
  if (left.value <= 0 || wanted <= 0 || took <= 0) return left;
  return to_ticks({to_seconds(left).value * std::clamp(wanted / took, 0.75, 4.0 / 3)});
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

ByteRange overwritten(const Stand& stand, Bytes bytes, Numel padded) {
  return stand.fills() ? ByteRange{{0}, bytes} : share_of(bytes, stand.range, padded);
}

}  // namespace ebb::replay
