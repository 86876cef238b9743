// The objective on the CPU: the definition of its bits (objective.hpp has the formulas).
#include <algorithm>
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
struct ElementSpan {
  std::int64_t first, end;
};

/// visit(element, terms) for elements [first, end), parameters of type kType. Draws come four at a time.
template <Type kType, class Visit>
void each_term(const ObjectiveParams& params, const ObjectiveKey& key, ElementSpan elements, Visit visit) {
  for (std::int64_t e = elements.first; e < elements.end;) {
    const auto group = static_cast<std::uint64_t>(e / 4);
    const Philox target = target_group(key, group);
    const Philox noise = noise_group(key, group);
    const std::int64_t behind = std::min(elements.end, (e / 4 + 1) * 4);
    for (; e < behind; ++e) {
      const auto lane = static_cast<std::uint64_t>(e % 4);
      const float p = read_value(kType, static_cast<const char*>(params.data) + (e - params.begin) * bytes_of(kType));
      const float t = uniform_pm1(lane_of(target, lane));
      const float r = uniform_pm1(lane_of(noise, lane));
      visit(e, Terms{.p = p, .d = p - t, .n = kObjectiveB * r});
    }
  }
}
template <class Visit>
void each_term(const ObjectiveParams& params, const ObjectiveKey& key, ElementSpan elements, Visit visit) {
  switch (params.type) {
    case Type::bf16:
      return each_term<Type::bf16>(params, key, elements, visit);
    case Type::fp16:
      return each_term<Type::fp16>(params, key, elements, visit);
    default:
      return each_term<Type::fp32>(params, key, elements, visit);
  }
}

}  // namespace

std::int64_t objective_workspace(std::int64_t begin, std::int64_t numel) {
  if (numel == 0) return 0;
  const std::int64_t tiles = sum_tiles(begin + numel) - begin / kSumTile;
  return tiles * static_cast<std::int64_t>(sizeof(double));
}

double objective_loss_ref(const ObjectiveParams& params, const ObjectiveKey& key) {
  std::vector<double> tiles;
  const std::int64_t end = params.begin + params.numel;
  for (std::int64_t e = params.begin; e < end;) {
    const std::int64_t tile_end = std::min(end, (e / kSumTile + 1) * kSumTile);
    TileSum tile;
    each_term(params, key, {e, tile_end}, [&](std::int64_t at, const Terms& t) {
      const float loss = 0.5F * kObjectiveA * t.d * t.d + t.n * t.p;
      tile.add(at, loss);
    });
    tiles.push_back(tile.total());
    e = tile_end;
  }
  const double sum = final_sum_ref(tiles);
  return std::isnan(sum) ? std::numeric_limits<double>::quiet_NaN() : sum;
}

void objective_gradient_ref(const ObjectiveParams& params, const ObjectiveKey& key, const ObjectiveGrads& grads) {
  each_term(params, key, {params.begin, params.begin + params.numel}, [&](std::int64_t e, const Terms& t) {
    const float gradient = grads.scale * (kObjectiveA * t.d + t.n);
    char* const at = static_cast<char*>(grads.data) + (e - params.begin) * bytes_of(grads.type);
    const float before = grads.accumulate ? read_value(grads.type, at) : 0;
    write_value(grads.type, at, canonical(grads.accumulate ? before + gradient : gradient));
  });
}

}  // namespace ebb::kernels
