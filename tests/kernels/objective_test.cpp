// The objective: its random numbers are Philox's, its gradient is its loss's derivative, its sum has the order it
// promises, and AdamW descends on it.
#include "kernels/objective.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "kernels/adamw.hpp"
#include "kernels/philox.hpp"
#include "kernels/sum_order.hpp"
#include "tests/catch.hpp"

using namespace ebb::kernels;

namespace {

bool same(const Philox& a, const Philox& b) { return a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w; }

std::vector<float> random_params(std::size_t n, unsigned seed) {
  std::vector<float> p(n);
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, 0.3F);
  for (float& x : p) x = normal(engine);
  return p;
}

// Target and noise from the text of the header, in double.
struct Draw {
  double t, r;
};
double fraction(const Philox& p, std::int64_t lane) {
  const std::uint32_t words[] = {p.x, p.y, p.z, p.w};
  return static_cast<double>(static_cast<std::int32_t>(words[lane]) >> 8) / 8388608;
}
Draw draw(const ObjectiveKey& key, std::int64_t e) {
  const auto q = static_cast<std::uint64_t>(e) / 4;
  const auto lo = static_cast<std::uint32_t>(q), hi = static_cast<std::uint32_t>(q >> 32);
  const auto words = [](std::uint64_t seed) { return std::pair(static_cast<std::uint32_t>(seed), seed >> 32); };
  const auto [k0, k1] = words(key.seed);
  const auto [n0, n1] = words(key.seed ^ kNoiseKey);
  const Philox target = philox({lo, hi, 0, 0xffffffff}, k0, static_cast<std::uint32_t>(k1));
  const Philox noise =
      philox({lo, hi, key.step, key.micro ^ (key.rank * 0x9e3779b9U)}, n0, static_cast<std::uint32_t>(n1));
  return {fraction(target, e % 4), fraction(noise, e % 4)};
}
double loss_of(double p, const Draw& d) { return 0.5 * 0.25 * (p - d.t) * (p - d.t) + 0.0625 * d.r * p; }

constexpr ObjectiveKey kKey{.seed = 0x123456789abcdefULL, .step = 3, .micro = 2, .rank = 1};

// The order of sum_order.hpp, written as what it says rather than as loops over lanes.
double folded(std::vector<double> x) {
  while (x.size() > 1) {
    std::vector<double> half;
    for (std::size_t i = 0; i < x.size() / 2; ++i) half.push_back(x[i] + x[i + x.size() / 2]);
    x = half;
  }
  return x[0];
}
double folded_twice(const std::vector<double>& x) {
  std::vector<double> groups;
  for (std::size_t i = 0; i < x.size(); i += 32) groups.push_back(folded({x.begin() + i, x.begin() + i + 32}));
  return folded(groups);
}

}  // namespace

TEST_CASE("Philox4x32-10 gives the known answers of its authors' library (Random123, tests/kat_vectors)") {
  REQUIRE(same(philox({0, 0, 0, 0}, 0, 0), {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  REQUIRE(same(philox({kOnes, kOnes, kOnes, kOnes}, kOnes, kOnes), {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  REQUIRE(same(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0),
               {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST_CASE("uniform numbers reach from -1 to just under 1") {
  REQUIRE(uniform_pm1(0x80000000) == -1);
  REQUIRE(uniform_pm1(0) == 0);
  REQUIRE(uniform_pm1(0x7fffffff) == 1 - 0x1p-23F);
  REQUIRE(uniform_pm1(0xffffffff) == -0x1p-23F);
}

TEST_CASE("loss and gradient are the formulas', far into the buffer and from any first element") {
  const std::vector<float> p = random_params(3000, 1);
  for (const std::int64_t begin : {std::int64_t{0}, std::int64_t{1}, std::int64_t{8190}, (std::int64_t{1} << 34) - 5}) {
    const ObjectiveParams params{.data = p.data(), .type = Type::fp32, .begin = begin, .numel = 3000};
    double want = 0;
    std::vector<float> grads(3002, -7.5F);
    objective_gradient_ref(params, kKey, {.data = grads.data() + 1, .accumulate = false});
    for (std::size_t i = 0; i < p.size(); ++i) {
      const Draw d = draw(kKey, begin + static_cast<std::int64_t>(i));
      want += loss_of(p[i], d);
      // The derivative by central differences; the loss is quadratic, so only double's rounding is left.
      const double slope = (loss_of(p[i] + 0.01, d) - loss_of(p[i] - 0.01, d)) / 0.02;
      REQUIRE(std::abs(grads[i + 1] - slope) < 1e-6);
    }
    REQUIRE((grads.front() == -7.5F && grads.back() == -7.5F));
    REQUIRE(objective_loss_ref(params, kKey) == Approx(want).epsilon(1e-6));
  }
}

TEST_CASE("the loss is summed in the order that sum_order.hpp states, to the last bit of the double") {
  constexpr std::int64_t kBegin = 5000, kNumel = 30'000;
  const std::vector<float> p = random_params(kNumel, 2);
  std::vector<double> tiles;
  for (std::int64_t tile = 0; tile <= (kBegin + kNumel - 1) / kSumTile; ++tile) {
    std::vector<double> threads;
    for (std::int64_t t = 0; t < kSumLanes / 4; ++t) {
      double lanes[4] = {};
      for (std::int64_t k = 0; k < 4; ++k) {
        for (std::int64_t e = tile * kSumTile + 4 * t + k; e < (tile + 1) * kSumTile; e += kSumLanes) {
          if (e < kBegin || e >= kBegin + kNumel) continue;
          const auto value = &p[static_cast<std::size_t>(e - kBegin)];
          lanes[k] += objective_loss_ref({.data = value, .type = Type::fp32, .begin = e, .numel = 1}, kKey);
        }
      }
      threads.push_back((lanes[0] + lanes[1]) + (lanes[2] + lanes[3]));
    }
    tiles.push_back(folded_twice(threads));
  }
  tiles.resize(kFinalLanes, 0);
  const ObjectiveParams params{.data = p.data(), .type = Type::fp32, .begin = kBegin, .numel = kNumel};
  REQUIRE(objective_loss_ref(params, kKey) == folded_twice(tiles));
  REQUIRE(objective_workspace(kBegin, kNumel) == 5 * 8);
  REQUIRE(objective_workspace(kBegin, 0) == 0);
}

TEST_CASE("gradients of pieces are those of the whole; scale and accumulation round as stated") {
  const std::vector<float> p = random_params(100, 3);
  std::vector<float> whole(100), pieces(100);
  const auto params = [&](std::int64_t at, std::int64_t n) {
    return ObjectiveParams{.data = p.data() + at, .type = Type::fp32, .begin = 7 + at, .numel = n};
  };
  objective_gradient_ref(params(0, 100), kKey, {.data = whole.data(), .accumulate = false});
  for (const auto& [at, n] : std::vector<std::pair<std::int64_t, std::int64_t>>{{60, 40}, {0, 1}, {1, 59}}) {
    objective_gradient_ref(params(at, n), kKey, {.data = pieces.data() + at, .accumulate = false});
  }
  REQUIRE(pieces == whole);
  std::vector<std::uint16_t> narrow(100, 0x3f80);  // ones
  objective_gradient_ref(params(0, 100), kKey, {.data = whole.data(), .scale = 0.3F, .accumulate = true});
  objective_gradient_ref(params(0, 100), kKey, {.data = narrow.data(), .type = Type::bf16, .scale = 0.3F});
  for (std::size_t i = 0; i < 100; ++i) {
    const float scaled = 0.3F * pieces[i];
    REQUIRE(whole[i] == pieces[i] + scaled);
    REQUIRE(narrow[i] == bf16_from_fp32(1 + scaled));
  }
}

TEST_CASE("noise has mean zero and differs by step, micro-batch and rank; targets do not") {
  constexpr std::int64_t kNumel = 100'000;
  double targets = 0, noise = 0, product = 0;
  for (std::int64_t e = 0; e < kNumel; ++e) {
    const Draw d = draw(kKey, e);
    targets += d.t, noise += d.r, product += d.t * d.r;
  }
  const double error = 5 * std::sqrt(1.0 / 3 / kNumel);
  REQUIRE(std::abs(targets / kNumel) < error);
  REQUIRE(std::abs(noise / kNumel) < error);
  REQUIRE(std::abs(product / kNumel) < error);

  const float p = 0.25F;
  const auto gradient = [&](const ObjectiveKey& key) {
    float g = 0;
    objective_gradient_ref({.data = &p, .type = Type::fp32, .begin = 10, .numel = 1}, key, {.data = &g});
    return g;
  };
  ObjectiveKey step = kKey, micro = kKey, rank = kKey, seed = kKey;
  step.step += 1, micro.micro += 1, rank.rank += 1, seed.seed += 1;
  for (const ObjectiveKey& other : {step, micro, rank, seed}) REQUIRE(gradient(other) != gradient(kKey));
  REQUIRE(draw(step, 10).t == draw(kKey, 10).t);
}

TEST_CASE("AdamW descends: the loss falls towards the targets' and one wrong bit changes it") {
  constexpr std::int64_t kNumel = 2000;
  const auto train = [](bool flip) {
    std::vector<float> p = random_params(kNumel, 4), grads(kNumel), m(kNumel), v(kNumel);
    std::vector<double> losses;
    for (std::uint32_t step = 1; step <= 60; ++step) {
      const ObjectiveParams params{.data = p.data(), .type = Type::fp32, .begin = 0, .numel = kNumel};
      const ObjectiveKey key{.seed = 1, .step = step};
      losses.push_back(objective_loss_ref(params, key));
      objective_gradient_ref(params, key, {.data = grads.data(), .accumulate = false});
      const AdamwRun run{.numel = kNumel};
      adamw_ref({.grad = grads.data(), .exp_avg = m.data(), .exp_avg_sq = v.data(), .master = p.data()}, {&run, 1},
                adamw_step({.learning_rate = 0.03F, .weight_decay = 0}, step));
      if (flip && step == 5) m[77] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(m[77]) ^ 0x400000U);
    }
    return losses;
  };
  const std::vector<double> losses = train(false), wrong = train(true);
  REQUIRE(losses.front() > 80);  // 2000 * (1/8) * (1/3 + 0.09)
  REQUIRE(losses.back() < losses.front() / 4);
  // The bit turned after the fifth update; the sixth update reads it, so the seventh loss is the first that differs.
  for (std::size_t i = 0; i < losses.size(); ++i) REQUIRE((wrong[i] == losses[i]) == (i < 6));
}

TEST_CASE("infinities and NaNs in parameters reach loss and gradient") {
  const float bad[] = {std::numeric_limits<float>::infinity(), std::bit_cast<float>(0xffc01234U)};
  float g[2];
  objective_gradient_ref({.data = bad, .type = Type::fp32, .begin = 0, .numel = 2}, kKey,
                         {.data = g, .accumulate = false});
  REQUIRE(std::isinf(g[0]));
  REQUIRE(std::bit_cast<std::uint32_t>(g[1]) == 0x7fffffff);
  const double loss = objective_loss_ref({.data = bad, .type = Type::fp32, .begin = 0, .numel = 2}, kKey);
  REQUIRE(std::bit_cast<std::uint64_t>(loss) == 0x7ff8000000000000);
}
