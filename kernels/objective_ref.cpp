// The objective on the CPU: the definition of its bits (objective.hpp has the formulas).
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/access_ref.hpp"
#include "kernels/objective.hpp"
#include "kernels/random_value.hpp"
#include "kernels/sum_ref.hpp"

namespace ebb::kernels {
namespace {

struct Terms {
  float p, d, n;
};

/// Draws come four at a time, for a group of elements: kept from one element to the next.
class Draws {
 public:
  explicit Draws(const ObjectiveKey& key) : key_(key) {}

  Terms terms(const ObjectiveParams& params, std::int64_t e) {
    const auto group = static_cast<std::uint64_t>(e / 4);
    const auto lane = static_cast<std::uint64_t>(e % 4);
    if (group != group_) {
      group_ = group;
      target_ = target_group(key_, group);
      noise_ = noise_group(key_, group);
    }
    const float p =
        read_value(params.type, static_cast<const char*>(params.data) + (e - params.begin) * bytes_of(params.type));
    const float t = uniform_pm1(lane_of(target_, lane));
    const float r = uniform_pm1(lane_of(noise_, lane));
    return {.p = p, .d = p - t, .n = kObjectiveB * r};
  }

 private:
  ObjectiveKey key_;
  std::uint64_t group_ = std::numeric_limits<std::uint64_t>::max();
  Philox target_{};
  Philox noise_{};
};

}  // namespace

std::int64_t objective_workspace(std::int64_t begin, std::int64_t numel) {
  if (numel == 0) return 0;
  const std::int64_t tiles = sum_tiles(begin + numel) - begin / kSumTile;
  return tiles * static_cast<std::int64_t>(sizeof(double));
}

double objective_loss_ref(const ObjectiveParams& params, const ObjectiveKey& key) {
  std::vector<double> tiles;
  const std::int64_t end = params.begin + params.numel;
  Draws draws(key);
  for (std::int64_t e = params.begin; e < end;) {
    const std::int64_t tile_end = std::min(end, (e / kSumTile + 1) * kSumTile);
    TileSum tile;
    for (; e < tile_end; ++e) {
      const Terms t = draws.terms(params, e);
      const float loss = 0.5F * kObjectiveA * t.d * t.d + t.n * t.p;
      tile.add(e, loss);
    }
    tiles.push_back(tile.total());
  }
  const double sum = final_sum_ref(tiles);
  return std::isnan(sum) ? std::numeric_limits<double>::quiet_NaN() : sum;
}

void objective_gradient_ref(const ObjectiveParams& params, const ObjectiveKey& key, const ObjectiveGrads& grads) {
  Draws draws(key);
  for (std::int64_t i = 0; i < params.numel; ++i) {
    const Terms t = draws.terms(params, params.begin + i);
    const float gradient = grads.scale * (kObjectiveA * t.d + t.n);
    char* const at = static_cast<char*>(grads.data) + i * bytes_of(grads.type);
    const float before = grads.accumulate ? read_value(grads.type, at) : 0;
    write_value(grads.type, at, canonical(grads.accumulate ? before + gradient : gradient));
  }
}

}  // namespace ebb::kernels
