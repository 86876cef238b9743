// The reference against a textbook: AdamW over all elements of the model in one loop, without plan, chunks or copies,
// written out here. Only the random draws and the roundings to bf16 are shared with the code under test.
#include <cmath>
#include <cstring>

#include "kernels/random_value.hpp"
#include "kernels/types.hpp"
#include "replay/reference_run.hpp"
#include "tests/catch.hpp"
#include "tests/replay/replay_cases.hpp"

using namespace ebb;
using namespace ebb::replay;
using namespace ebb::test;

namespace {

/// Elements that no rank owns are padding: they have parameters and gradients, and never change.
struct Textbook {
  std::vector<int> owner;  // by padded element; -1: padding
  std::vector<float> master, exp_avg, exp_avg_sq, gradient;
  std::vector<float> sums;     // of squares, by step
  std::vector<double> losses;  // of rank 0, by step

  void train(int ranks, int steps);
  void step(int ranks, int t);
};

float draw(const kernels::Philox& group, std::size_t e) { return kernels::uniform_pm1(kernels::lane_of(group, e % 4)); }
float bf16(float x) { return kernels::fp32_from_bf16(kernels::bf16_from_fp32(x)); }

void Textbook::train(int ranks, int steps) {
  exp_avg.assign(owner.size(), 0);
  exp_avg_sq.assign(owner.size(), 0);
  for (std::size_t e = 0; e < owner.size(); ++e) master.push_back(draw(kernels::random_group(1, e / 4), e));
  for (int t = 1; t <= steps; ++t) step(ranks, t);
}

void Textbook::step(int ranks, int t) {
  std::vector<double> squares(static_cast<std::size_t>(ranks));
  gradient.assign(owner.size(), 0);
  losses.push_back(0);
  for (std::size_t e = 0; e < owner.size(); ++e) {
    const float p = bf16(master[e]);
    for (int r = 0; r < ranks; ++r) {
      const kernels::ObjectiveKey key{1, static_cast<std::uint32_t>(t), 0, static_cast<std::uint32_t>(r)};
      const float d = p - draw(kernels::target_group(key, e / 4), e);
      const float noise = 0.0625F * draw(kernels::noise_group(key, e / 4), e);
      gradient[e] += (0.25F * d + noise) / static_cast<float>(ranks);
      if (r == 0) losses.back() += 0.5F * 0.25F * d * d + noise * p;
    }
    if (owner[e] >= 0) squares[static_cast<std::size_t>(owner[e])] += static_cast<double>(gradient[e]) * gradient[e];
  }
  float sum = 0;
  for (const double square : squares) sum += static_cast<float>(square);
  sums.push_back(sum);
  const float clip = std::min(1.0F, 1.0F / (std::sqrt(sum) + 1e-6F));
  const auto correction1 = static_cast<float>(1 - std::pow(static_cast<double>(0.9F), t));
  const auto correction2 = static_cast<float>(1 - std::pow(static_cast<double>(0.999F), t));
  for (std::size_t e = 0; e < owner.size(); ++e) {
    if (owner[e] < 0) continue;
    const float g = gradient[e] * clip;
    const float m = exp_avg[e] = 0.9F * exp_avg[e] + (1 - 0.9F) * g;
    const float v = exp_avg_sq[e] = 0.999F * exp_avg_sq[e] + (1 - 0.999F) * g * g;
    const float direction = (m / correction1) / (std::sqrt(v / correction2) + 1e-8F) + 0.01F * master[e];
    master[e] = master[e] - 1e-3F * direction;
  }
}

}  // namespace

TEST_CASE("The reference gives the bits of a textbook's AdamW, on one rank and on two") {
  constexpr int kSteps = 4;
  for (const int ranks : {1, 2}) {
    Job job = tiny_job();
    job.parallel.gpus = ranks;
    job.parallel.overlap_grad_reduce = job.parallel.overlap_param_gather = false;  // one forward, one backward
    for (const Candidate& candidate :
         {Candidate{.policy = Policy::resident}, Candidate{.policy = Policy::chunked, .chunk_numel = {5000}}}) {
      const std::vector<Plan> plans = host_plans(job, candidate).plans;
      const std::vector<Program> programs = compile_all(plans);
      Textbook book;
      book.owner.assign(static_cast<std::size_t>(programs.front().padded.value), -1);
      for (const Plan& plan : plans)
        for (const PlanShard& shard : plan.shards)
          std::fill_n(book.owner.begin() + shard.at.value, shard.numel.value, static_cast<int>(plan.rank));
      book.train(ranks, kSteps);

      TrainingOptions training;
      training.digests = false;  // with them every step has other targets
      ReferenceRun run(programs, training, std::nullopt);
      for (int t = 0; t < kSteps; ++t) run.step();
      for (std::size_t r = 0; r < run.size(); ++r) {
        std::size_t different = 0;
        for (const StatePlace& place : programs[r].after) {
          const std::vector<float>& expected = place.state == kExpAvg     ? book.exp_avg
                                               : place.state == kExpAvgSq ? book.exp_avg_sq
                                                                          : book.master;
          different += std::memcmp(run.rank(r).state(place), expected.data() + place.at.value,
                                   static_cast<std::size_t>(4 * place.elements.numel().value)) != 0;
        }
        CHECK(different == 0);
        CHECK_FALSE(programs[r].after.empty());
        const RankNumbers numbers = run.rank(r).finish();
        for (std::size_t t = 0; t < kSteps; ++t) {
          CHECK(numbers.steps[t].sum_of_squares == book.sums[t]);
          if (r == 0) CHECK(numbers.steps[t].loss == Approx(book.losses[t]).epsilon(1e-12));  // summed in another order
        }
      }
    }
  }
}
