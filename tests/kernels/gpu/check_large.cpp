// Runs beyond 2^31 elements: no index may wrap. What is computed here at the edges and around 2^31 elements of a run is
// compared with the references; what is summed over all of it, with a sum known in closed form or with its pieces.
#include <cstdio>
#include <cstring>
#include <vector>

#include "kernels/adamw.hpp"
#include "kernels/digest.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/norm.hpp"
#include "kernels/objective.hpp"
#include "tests/kernels/gpu/checks.hpp"
#include "tests/kernels/gpu/device.hpp"

namespace ebb::kernels::gpu {
namespace {

constexpr std::int64_t kNumel = (std::int64_t{1} << 31) + 5;
constexpr std::int64_t kWindow = 1 << 18;
constexpr std::int64_t kBegins[] = {0, (std::int64_t{1} << 30) - kWindow / 2, kNumel - kWindow};

std::vector<float> filled(std::int64_t begin, std::uint64_t seed, float scale) {
  std::vector<float> x(static_cast<std::size_t>(kWindow));
  const Run run{.index = begin, .numel = kWindow};
  fill_random_ref(Type::fp32, x.data(), {&run, 1}, seed, scale);
  return x;
}

bool equal(const char* name, const DeviceBytes& device, std::int64_t begin, const std::vector<float>& want) {
  std::vector<float> got(want.size());
  copy(got.data(), device.get() + 4 * begin, 4 * got.size());
  if (std::memcmp(got.data(), want.data(), 4 * got.size()) == 0) return true;
  std::printf("  %s differs from element %lld on\n", name, static_cast<long long>(begin));
  return false;
}

void fill(const DeviceBytes& x, std::uint64_t seed, float scale) {
  const Run run{.numel = kNumel};
  check(launch_fill_random(Type::fp32, x.get(), {&run, 1}, seed, scale, nullptr), "fill");
}

bool check_adamw_large(const DeviceBytes& p, const DeviceBytes& g, const DeviceBytes& m, const DeviceBytes& v) {
  fill(p, 1, 1), fill(g, 2, 0.01F), fill(m, 3, 0.001F);
  const Run all{.numel = kNumel};
  check(launch_fill_bytes(Type::fp32, v.get(), {&all, 1}, 0, nullptr), "fill");
  const AdamwStep step = adamw_step({}, 2);
  const AdamwRun run{.numel = kNumel};
  check(launch_adamw({.grad = g.get(), .exp_avg = m.get(), .exp_avg_sq = v.get(), .master = p.get()}, {&run, 1}, step,
                     nullptr),
        "adamw");
  finish("adamw");
  bool same = true;
  for (const std::int64_t begin : kBegins) {
    std::vector<float> hp = filled(begin, 1, 1), hg = filled(begin, 2, 0.01F), hm = filled(begin, 3, 0.001F),
                       hv(hp.size());
    const AdamwRun window{.numel = kWindow};
    adamw_ref({.grad = hg.data(), .exp_avg = hm.data(), .exp_avg_sq = hv.data(), .master = hp.data()}, {&window, 1},
              step);
    same &= equal("param", p, begin, hp) & equal("exp_avg", m, begin, hm) & equal("exp_avg_sq", v, begin, hv);
  }
  return same;
}

bool check_objective_large(const DeviceBytes& p, const DeviceBytes& g) {
  fill(p, 4, 0.02F);
  const ObjectiveKey key{.seed = 5};
  check(launch_objective_gradient({.data = p.get(), .type = Type::fp32, .numel = kNumel}, key,
                                  {.data = g.get(), .accumulate = false}, nullptr),
        "gradient");
  finish("gradient");
  bool same = true;
  for (const std::int64_t begin : kBegins) {
    const std::vector<float> hp = filled(begin, 4, 0.02F);
    std::vector<float> want(hp.size());
    objective_gradient_ref({.data = hp.data(), .type = Type::fp32, .begin = begin, .numel = kWindow}, key,
                           {.data = want.data(), .accumulate = false});
    same &= equal("gradient", g, begin, want);
  }
  return same;
}

// Ones, and five elements at the very end whose squares are 2^32: 2^31 + 5 * 2^32 is exact in fp32.
bool check_sums_large(const DeviceBytes& x) {
  std::vector<float> ones(1 << 24, 1.0F);
  for (std::int64_t begin = 0; begin < kNumel; begin += 1 << 24) {
    const std::int64_t n = std::min<std::int64_t>(1 << 24, kNumel - begin);
    copy(x.get() + 4 * begin, ones.data(), static_cast<std::size_t>(4 * n));
  }
  const std::vector<float> last(5, 65536.0F);
  copy(x.get() + 4 * (kNumel - 5), last.data(), 20);
  const Run all{.numel = kNumel};
  const DeviceBytes workspace(sum_of_squares_workspace({&all, 1})), sum(4), digest(8), pieces(8);
  check(launch_sum_of_squares(Type::fp32, x.get(), {&all, 1}, workspace.get(), sum.as<float>(), nullptr), "norm");
  check(cudaMemset(digest.get(), 0, 8), "cudaMemset");
  check(cudaMemset(pieces.get(), 0, 8), "cudaMemset");
  check(launch_digest(Type::fp32, x.get(), {&all, 1}, 1, digest.as<std::uint64_t>(), nullptr), "digest");
  std::vector<Run> runs;
  for (std::int64_t begin = 0; begin < kNumel;) {
    const std::int64_t n = std::min<std::int64_t>(99'999'999, kNumel - begin);
    runs.push_back({.offset = 4 * begin, .index = begin, .numel = n});
    begin += n;
  }
  check(launch_digest(Type::fp32, x.get(), runs, 1, pieces.as<std::uint64_t>(), nullptr), "digest");
  finish("sums");
  float got = 0;
  std::uint64_t whole = 0, of_pieces = 1;
  copy(&got, sum.get(), 4), copy(&whole, digest.get(), 8), copy(&of_pieces, pieces.get(), 8);
  const bool same = got == 0x1p31F + 5 * 0x1p32F && whole == of_pieces;
  if (!same) std::printf("  sum of squares %.9g, digests %016lx %016lx\n", static_cast<double>(got), whole, of_pieces);
  return same;
}

}  // namespace

bool check_large() {
  const DeviceBytes p(4 * kNumel), g(4 * kNumel), m(4 * kNumel), v(4 * kNumel);
  const bool same = check_adamw_large(p, g, m, v) & check_objective_large(p, g) & check_sums_large(p);
  std::printf("%-12s %5d cases: %s\n", "2^31 + 5", 4, same ? "same bits" : "DIFFERENT");
  return same;
}

}  // namespace ebb::kernels::gpu
