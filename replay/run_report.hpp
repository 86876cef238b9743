// What `ebb-replay run` prints: the numbers of a run on the CPU; times, rates, memory and numbers of one on GPUs.
#pragma once

#include <span>
#include <string>

#include "replay/execute.hpp"

namespace ebb::replay {

struct Spread {
  Ticks median{0};
  Ticks least{0};
  Ticks most{0};
};
/// Precondition: not empty.
Spread spread_of(std::span<const Ticks> times);

/// Bytes that copies of the optimizer step move in one direction, over the time in which at least one of them runs.
/// 0 where nothing is copied.
struct LinkRates {
  BytesPerSecond h2d{0};
  BytesPerSecond d2h{0};
  BytesPerSecond together{0};  // both directions, over the time in which any copy runs
};
LinkRates link_rates(const RankTimeline& timeline);

std::string to_text(const RunResult& run);
std::string to_json(const RunResult& run);
std::string numbers_text(std::span<const RankNumbers> ranks, std::span<const Program> programs);
std::string numbers_json(std::span<const RankNumbers> ranks, std::span<const Program> programs);

}  // namespace ebb::replay
