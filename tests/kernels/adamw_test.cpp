// The AdamW reference computes AdamW (against the textbook in double precision and its closed forms), treats every
// element alike (any split gives the same bits), touches nothing else, and rounds where an array is narrower.
#include "kernels/adamw.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tests/catch.hpp"

using namespace ebb::kernels;

namespace {

constexpr float kGuard = -7.5F;  // stands before and after the elements; must survive

struct Buffers {
  explicit Buffers(std::int64_t n)
      : numel(n), param(size(n), kGuard), grad(param), exp_avg(param), exp_avg_sq(param), param_bf16(size(n), 0xabcd) {}

  static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n) + 2; }

  AdamwArrays arrays() {
    return {.grad = grad.data(),
            .exp_avg = exp_avg.data(),
            .exp_avg_sq = exp_avg_sq.data(),
            .master = param.data(),
            .param = param_bf16.data()};
  }
  AdamwRun part(std::int64_t begin, std::int64_t n) const {
    const std::int64_t at = 1 + begin;
    return {.grad = 4 * at, .exp_avg = 4 * at, .exp_avg_sq = 4 * at, .master = 4 * at, .param = 2 * at, .numel = n};
  }
  void update(const AdamwStep& step) {
    const AdamwRun whole = part(0, numel);
    adamw_ref(arrays(), {&whole, 1}, step);
  }

  std::int64_t numel;
  std::vector<float> param, grad, exp_avg, exp_avg_sq;
  std::vector<std::uint16_t> param_bf16;
};

// Weights and gradients over many orders of magnitude; moments as if some steps had happened.
Buffers random_buffers(std::int64_t n, unsigned seed) {
  Buffers b(n);
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> exponent(-6, 1);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto k = static_cast<std::size_t>(i) + 1;
    b.param[k] = normal(engine) * std::pow(10.0F, exponent(engine));
    b.grad[k] = normal(engine) * std::pow(10.0F, exponent(engine));
    b.exp_avg[k] = 0.1F * b.grad[k] * normal(engine);
    b.exp_avg_sq[k] = std::abs(0.001F * b.grad[k] * b.grad[k] * normal(engine));
  }
  return b;
}

bool same_bits(const Buffers& a, const Buffers& b) {
  const auto same = [](const auto& x, const auto& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(x[0])) == 0;
  };
  return same(a.param, b.param) && same(a.exp_avg, b.exp_avg) && same(a.exp_avg_sq, b.exp_avg_sq) &&
         same(a.param_bf16, b.param_bf16);
}

// Loshchilov and Hutter, "Decoupled Weight Decay Regularization", algorithm 2 with a constant rate, in double: decay
// first, then the step along the corrected moments.
struct Textbook {
  double p, m, v;

  void step(double g, const AdamwOptions& o, int t) {
    const double beta1 = o.beta1, beta2 = o.beta2, rate = o.learning_rate;
    p *= 1 - rate * o.weight_decay;
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    const double m_hat = m / (1 - std::pow(beta1, t));
    const double v_hat = v / (1 - std::pow(beta2, t));
    p -= rate * m_hat / (std::sqrt(v_hat) + o.epsilon);
  }
};

constexpr float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

}  // namespace

TEST_CASE("a hundred steps stay within float error of the textbook in double") {
  constexpr int kSteps = 100;
  constexpr double kUlp = std::numeric_limits<float>::epsilon();
  const AdamwOptions options{
      .learning_rate = 3e-4F, .beta1 = 0.9F, .beta2 = 0.95F, .epsilon = 1e-8F, .weight_decay = 0.1F};
  Buffers b = random_buffers(1000, 1);
  std::vector<Textbook> oracle;
  for (std::size_t k = 1; k <= 1000; ++k) oracle.push_back({b.param[k], 0, 0});
  std::fill(b.exp_avg.begin(), b.exp_avg.end(), 0.0F);
  std::fill(b.exp_avg_sq.begin(), b.exp_avg_sq.end(), 0.0F);

  std::mt19937 engine(2);
  std::normal_distribution<float> normal;
  for (int t = 1; t <= kSteps; ++t) {
    for (std::size_t k = 1; k <= 1000; ++k) {
      b.grad[k] = normal(engine) * 1e-3F * static_cast<float>(k);
      oracle[k - 1].step(b.grad[k], options, t);
    }
    b.update(adamw_step(options, t));
  }

  for (std::size_t k = 1; k <= 1000; ++k) {
    const Textbook& want = oracle[k - 1];
    // Each step rounds the weight once and the update of about one rate a few times.
    REQUIRE(std::abs(b.param[k] - want.p) <= kSteps * kUlp * (std::abs(want.p) + 8 * options.learning_rate));
    // The moments forget: errors of the last 1 / (1 - beta) steps remain, each an ulp of the largest gradient's share.
    const double gradient = 4e-3 * static_cast<double>(k);
    REQUIRE(std::abs(b.exp_avg[k] - want.m) <= 10 * kUlp * gradient);
    REQUIRE(std::abs(b.exp_avg_sq[k] - want.v) <= 20 * kUlp * gradient * gradient);
  }
}

TEST_CASE("the first step from zero moments moves by the rate against the sign, whatever the gradient's size") {
  const AdamwOptions options{.learning_rate = 0.01F, .epsilon = 0, .weight_decay = 0};
  for (const float g : {1e-12F, 3e-5F, 1.0F, 7e8F, -1e-12F, -2.0F}) {
    Buffers b(1);
    b.param[1] = 0.5F;
    b.grad[1] = g;
    b.exp_avg[1] = b.exp_avg_sq[1] = 0;
    b.update(adamw_step(options, 1));
    REQUIRE(b.param[1] == Approx(g > 0 ? 0.49 : 0.51).epsilon(1e-6));
  }
}

TEST_CASE("weight decay is decoupled: without a gradient the weight shrinks by rate times decay, moments stay zero") {
  Buffers b(1);
  b.param[1] = 2;
  b.grad[1] = b.exp_avg[1] = b.exp_avg_sq[1] = 0;
  b.update(adamw_step({.learning_rate = 0.5F, .weight_decay = 0.25F}, 3));
  REQUIRE(b.param[1] == 1.75F);
  REQUIRE(b.exp_avg[1] == 0);
  REQUIRE(b.exp_avg_sq[1] == 0);
}

TEST_CASE("bias corrections are rounded once, from a double power") {
  const AdamwStep first = adamw_step({.beta1 = 0.9F, .beta2 = 0.95F}, 1);
  REQUIRE(first.bias_correction1 == 1 - 0.9F);
  REQUIRE(first.bias_correction2 == 1 - 0.95F);
  // 1 - 0.999^1000 with beta the float next to 0.999 (0.99900001287...): 0.6323 to four digits, 1 in the far end.
  REQUIRE(adamw_step({.beta2 = 0.999F}, 1000).bias_correction2 == Approx(0.63230).epsilon(1e-5));
  REQUIRE(adamw_step({.beta2 = 0.999F}, 1'000'000).bias_correction2 == 1);
}

TEST_CASE("any split into runs gives the same bits, and nothing outside a run is touched") {
  constexpr std::int64_t kNumel = 1003;
  const AdamwStep step = adamw_step({}, 7);
  const Buffers start = random_buffers(kNumel, 3);
  Buffers whole = start;
  whole.update(step);
  REQUIRE_FALSE(same_bits(whole, start));
  REQUIRE((whole.param.front() == kGuard && whole.param.back() == kGuard));
  REQUIRE((whole.param_bf16.front() == 0xabcd && whole.param_bf16.back() == 0xabcd));

  std::mt19937 engine(4);
  for (const std::int64_t longest : {1, 2, 5, 64, 1000}) {
    Buffers split = start;
    std::vector<AdamwRun> runs;
    for (std::int64_t begin = 0; begin < kNumel;) {
      const std::int64_t n = std::min(kNumel - begin, std::uniform_int_distribution<std::int64_t>(0, longest)(engine));
      runs.push_back(split.part(begin, n));
      begin += n;
    }
    std::shuffle(runs.begin(), runs.end(), engine);
    adamw_ref(split.arrays(), runs, step);
    REQUIRE(same_bits(split, whole));
  }
}

TEST_CASE("one run touches its own elements only, whatever its tail") {
  const Buffers start = random_buffers(70, 5);
  for (std::int64_t n = 0; n <= 70; ++n) {
    Buffers b = start;
    const AdamwRun run = b.part(0, n);
    adamw_ref(b.arrays(), {&run, 1}, adamw_step({}, 1));
    for (std::int64_t i = 0; i < 70; ++i) {
      const auto k = static_cast<std::size_t>(i) + 1;
      REQUIRE((b.exp_avg[k] == start.exp_avg[k]) == (i >= n));
      REQUIRE((b.param_bf16[k] == start.param_bf16[k]) == (i >= n));
    }
  }
}

TEST_CASE("the bf16 copy is optional and changes no other bit") {
  const AdamwStep step = adamw_step({}, 2);
  Buffers with = random_buffers(100, 6);
  Buffers without = with;
  with.update(step);
  AdamwArrays arrays = without.arrays();
  arrays.param = nullptr;
  const AdamwRun run = without.part(0, 100);
  adamw_ref(arrays, {&run, 1}, step);
  REQUIRE(without.param_bf16 == Buffers(100).param_bf16);
  without.param_bf16 = with.param_bf16;
  REQUIRE(same_bits(with, without));
}

TEST_CASE("infinite and NaN gradients give the GPU's NaN, in that element alone") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {infinity, -infinity, float_of(0xffc0'1234)}) {
    Buffers b = random_buffers(3, 8);
    b.grad[2] = bad;
    b.update(adamw_step({}, 1));
    REQUIRE(std::bit_cast<std::uint32_t>(b.param[2]) == 0x7fff'ffff);
    REQUIRE(b.param_bf16[2] == 0x7fff);
    REQUIRE(std::isfinite(b.param[1]));
    REQUIRE(std::isfinite(b.param[3]));
  }
}

TEST_CASE("narrow gradients and moments: widened, updated in fp32, rounded back; the step sees the moments unrounded") {
  constexpr std::int64_t kNumel = 500;
  const AdamwStep step = adamw_step({}, 3);
  for (const int mask : {1, 2, 4, 7}) {  // which of grad, exp_avg, exp_avg_sq are bf16
    Buffers wide = random_buffers(kNumel, 9);
    std::vector<std::uint16_t> grad, exp_avg, exp_avg_sq;
    const auto narrow = [](std::vector<float>& from, std::vector<std::uint16_t>& to) {
      for (float& x : from) to.push_back(bf16_from_fp32(x)), x = fp32_from_bf16(to.back());
    };
    narrow(wide.grad, grad), narrow(wide.exp_avg, exp_avg), narrow(wide.exp_avg_sq, exp_avg_sq);
    Buffers mixed = wide;
    wide.update(step);

    AdamwArrays arrays = mixed.arrays();
    AdamwRun run = mixed.part(0, kNumel);
    if (mask & 1) arrays.grad = grad.data(), arrays.grad_type = Type::bf16, run.grad /= 2;
    if (mask & 2) arrays.exp_avg = exp_avg.data(), arrays.exp_avg_type = Type::bf16, run.exp_avg /= 2;
    if (mask & 4) arrays.exp_avg_sq = exp_avg_sq.data(), arrays.exp_avg_sq_type = Type::bf16, run.exp_avg_sq /= 2;
    adamw_ref(arrays, {&run, 1}, step);
    REQUIRE(mixed.param == wide.param);
    REQUIRE(mixed.param_bf16 == wide.param_bf16);
    for (std::size_t k = 1; k <= kNumel; ++k) {
      if (mask & 2) REQUIRE(exp_avg[k] == bf16_from_fp32(wide.exp_avg[k]));
      if (mask & 4) REQUIRE(exp_avg_sq[k] == bf16_from_fp32(wide.exp_avg_sq[k]));
    }
    if (!(mask & 2)) REQUIRE(mixed.exp_avg == wide.exp_avg);
    if (!(mask & 4)) REQUIRE(mixed.exp_avg_sq == wide.exp_avg_sq);
  }
}

TEST_CASE("the parameter is the rounded master: fp16, or fp8 after its scale") {
  constexpr std::int64_t kNumel = 300;
  const AdamwStep step = adamw_step({}, 3);
  Buffers b = random_buffers(kNumel, 10);
  Buffers again = b;
  std::vector<std::uint8_t> fp8(Buffers::size(kNumel), 0xcd);
  AdamwArrays arrays = b.arrays();
  arrays.param = fp8.data(), arrays.param_type = Type::fp8_e4m3, arrays.param_scale = 96;
  AdamwRun run = b.part(0, kNumel);
  run.param = 1;
  adamw_ref(arrays, {&run, 1}, step);
  AdamwArrays half = again.arrays();
  half.param_type = Type::fp16;
  run.param = 2;
  adamw_ref(half, {&run, 1}, step);
  REQUIRE(again.param == b.param);
  for (std::size_t k = 1; k <= kNumel; ++k) {
    REQUIRE(fp8[k] == fp8_from_fp32(b.param[k] * 96));
    REQUIRE(again.param_bf16[k] == fp16_from_fp32(b.param[k]));
  }
  REQUIRE((fp8.front() == 0xcd && fp8.back() == 0xcd));
}

TEST_CASE("bytes an element moves") {
  float x = 0;
  REQUIRE(adamw_bytes({}) == 28);
  REQUIRE(adamw_bytes({.param = &x}) == 30);
  REQUIRE(adamw_bytes({.param = &x, .param_type = Type::fp8_e4m3}) == 29);
  REQUIRE(adamw_bytes({.grad_type = Type::bf16, .exp_avg_type = Type::bf16, .exp_avg_sq_type = Type::bf16}) == 18);
}
