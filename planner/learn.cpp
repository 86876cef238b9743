#include "planner/learn.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "models/errors.hpp"
#include "models/quantity_text.hpp"
#include "planner/constraints.hpp"
#include "planner/evaluator.hpp"
#include "planner/reserved.hpp"

namespace ebb {

namespace {

/// Sizes that the run printed at its start and the job states as well.
void check_same_job(const Job& job, const TrainingLog& log, const std::string& file) {
  const Parallel& p = job.parallel;
  const std::array<std::pair<const char*, std::int64_t>, 10> sizes = {{{"world_size", p.gpus},
                                                                       {"tensor_model_parallel_size", p.tensor},
                                                                       {"pipeline_model_parallel_size", p.pipeline},
                                                                       {"context_parallel_size", p.context},
                                                                       {"expert_model_parallel_size", p.expert},
                                                                       {"num_layers", job.model.layers},
                                                                       {"hidden_size", job.model.hidden},
                                                                       {"seq_length", job.batch.sequence},
                                                                       {"micro_batch_size", job.batch.micro},
                                                                       {"global_batch_size", job.batch.global}}};
  for (const auto& [name, wanted] : sizes) {
    const auto said = log.arguments.find(name);
    if (said == log.arguments.end() || said->second == "None" || said->second == std::to_string(wanted)) continue;
    throw InputError({file}, fmt::format("its run had {} {}, the job has {}", name, said->second.substr(0, 40), wanted),
                     "give the job of this run");
  }
}

struct Predicted {
  Seconds step{0};
  Seconds optimizer{0};
};

Predicted predict(Job& job, Seconds compute, const Candidate& candidate) {
  job.compute.step_seconds = compute;
  const Answer answer = Evaluator(job).answer(candidate);
  return {answer.step, answer.optimizer};
}

/// x with T(x) = t, by x + t - T(x), which is exact where nothing overlaps, kept inside what is known to hold x.
Seconds solve(Job& job, Seconds t, const Candidate& candidate, const std::string& file, Learned& learned) {
  constexpr int kMostSteps = 60;
  constexpr double kClose = 1e-6;
  double low = t.value * 1e-6;
  double high = t.value;
  const Predicted least = predict(job, {low}, candidate);
  if (least.step > t)
    throw InputError(
        {file},
        fmt::format("its iterations take {}, and optimizer and communication alone take {} under {} on {}",
                    format_seconds(t), format_seconds(least.step), name_of(candidate.policy), job.cluster.name),
        "give the job, the policy (offload:) and the cluster of this run, best a calibrated one");
  double x = std::clamp(t.value - (least.step.value - low), low, high);
  for (int i = 0; i < kMostSteps; ++i) {
    const Predicted now = predict(job, {x}, candidate);
    learned.optimizer_predicted = now.optimizer;
    const double off = t.value - now.step.value;
    if (std::abs(off) <= kClose * t.value) break;
    (off > 0 ? low : high) = x;
    const double next = x + off;
    x = next > low && next < high ? next : (low + high) / 2;
  }
  return {x};
}

struct RankPrediction {
  Bytes allocated{0};
  Bytes peak{0};
};

RankPrediction memory_of(const Job& job, std::int64_t number, const Candidate& candidate) {
  const StageLayout stage = stage_layout(job, coordinates_of(job, number).pipeline);
  const RankModel rank = rank_model(job, stage, number);
  const PredictedMemory memory =
      replay(allocation_trace(rank, candidate), kUnlimited, {.expandable_segments = job.megatron.expandable_segments});
  return {memory.allocated, std::max({memory.init_peak, memory.load_peak, memory.first_peak, memory.peak_allocated})};
}

/// Of each rank the first report after a second iteration, when optimizer state is there and no save has been; where
/// there is none, the last.
std::vector<LoggedMemory> reports_to_use(const TrainingLog& log) {
  const std::int64_t first = log.iterations.empty() ? 0 : log.iterations.front().last;
  std::vector<LoggedMemory> chosen;
  for (const LoggedMemory& report : log.memory) {
    const auto same = std::find_if(chosen.begin(), chosen.end(),
                                   [&](const LoggedMemory& other) { return other.rank == report.rank; });
    if (same == chosen.end())
      chosen.push_back(report);
    else if (same->iterations <= first && !report.after_save)
      *same = report;
  }
  std::sort(chosen.begin(), chosen.end(), [](const LoggedMemory& a, const LoggedMemory& b) { return a.rank < b.rank; });
  return chosen;
}

/// What torch hands out is a multiple of this.
Bytes rounded(Bytes bytes) {
  constexpr std::int64_t kBlock = 512;
  return {std::max<std::int64_t>(bytes.value + kBlock / 2, 0) / kBlock * kBlock};
}

/// The highest moment of forward and backward, whatever the rest of the life holds: with so much more that it decides.
Bytes activations_peak(Job job, std::int64_t rank, const Candidate& candidate) {
  constexpr Bytes kMuch{std::int64_t{1} << 44};
  job.measured.peak_remainder = kMuch;
  return memory_of(job, rank, candidate).peak - kMuch;
}

/// "" where a rank held about what is predicted, or more.
std::string shortfall_of(const LearnedMemory& rank, bool peak_counts) {
  constexpr double kPart = 0.05;
  constexpr Bytes kLeast{64 << 20};
  const auto far_below = [&](Bytes logged, Bytes predicted) {
    const Bytes gap = predicted - logged;
    return gap > kLeast && static_cast<double>(gap.value) > kPart * static_cast<double>(predicted.value);
  };
  std::string text;
  if (far_below(rank.allocated, rank.predicted_allocated))
    text = fmt::format("{} between steps, where {} are predicted", format_bytes(rank.allocated),
                       format_bytes(rank.predicted_allocated));
  if (peak_counts && far_below(rank.peak, rank.predicted_peak))
    text += fmt::format("{}{} at its peak, where {} are predicted", text.empty() ? "" : ", and ",
                        format_bytes(rank.peak), format_bytes(rank.predicted_peak));
  return text;
}

/// A run that held far less than its policy does is not of this policy, or not of this job. The peak of a process'
/// first line comes before the optimizer's state is there, and does not count.
void warn_of_shortfall(Learned& learned, std::int64_t first) {
  std::int64_t ranks = 0;
  for (const LearnedMemory& rank : learned.memory) {
    const std::string text = shortfall_of(rank, rank.iterations > first);
    if (!text.empty() && ranks++ == 0)
      learned.warnings.push_back(
          fmt::format("rank {} held {}: the log seems to be of another job, or of a run without {}", rank.rank, text,
                      name_of(learned.candidate.policy)));
  }
  if (ranks > 1) learned.warnings.back() += fmt::format(" (as on {} more ranks)", ranks - 1);
}

void learn_memory(const TrainingLog& log, const std::string& file, Learned& learned) {
  Job& job = learned.job;
  const std::vector<LoggedMemory> reports = reports_to_use(log);
  for (const LoggedMemory& report : reports) {
    if (report.rank >= job.parallel.gpus)
      throw InputError({file},
                       fmt::format("rank {} reports memory, the job has {} GPUs", report.rank, job.parallel.gpus),
                       "give the job of this run");
    const RankPrediction now = memory_of(job, report.rank, learned.candidate);
    learned.memory.push_back(
        {report.rank, report.iterations, report.allocated, now.allocated, report.max_allocated, now.peak});
    job.measured.resident_remainder =
        std::max(job.measured.resident_remainder, rounded(report.allocated - now.allocated));
  }
  // The remainder between steps is there at the peak as well; what the peak has on top comes second.
  const Measured between = job.measured;
  Bytes on_top{0};
  for (const LoggedMemory& report : reports) {
    job.measured = between;
    if (report.max_allocated <= memory_of(job, report.rank, learned.candidate).peak) continue;
    on_top = std::max(on_top, rounded(report.max_allocated - activations_peak(job, report.rank, learned.candidate)));
  }
  job.measured = {between.resident_remainder, on_top};
  warn_of_shortfall(learned, log.iterations.front().last);
  if (reports.empty())
    learned.assumed.emplace_back(
        "no memory line (\"[Rank 0] (after 2 iterations) memory (MB) | allocated: ...\"): nothing learned of memory");
  const bool one_iteration = !log.iterations.empty() && std::all_of(reports.begin(), reports.end(), [&](const auto& r) {
    return r.iterations <= log.iterations.front().last && log.iterations.front().count == 1;
  });
  if (!reports.empty() && one_iteration)
    learned.assumed.emplace_back("memory is reported after the first line only: its highest moment may come later");
}

std::optional<Seconds> median_timer(const TrainingLog& log, const char* name) {
  const auto timer = log.timers.find(name);
  if (timer == log.timers.end()) return std::nullopt;
  std::vector<Seconds> values = timer->second;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

}  // namespace

Learned learn(const Job& job, const TrainingLog& log, const std::string& file) {
  Learned learned;
  learned.job = job;
  learned.job.measured = {};
  check_same_job(job, log, file);
  const LoggedPolicy policy = logged_policy(job, log, file);
  learned.candidate = policy.candidate;
  learned.policy_source = policy.source;
  if (policy.source == PolicySource::none)
    learned.assumed.emplace_back(
        "the run did not offload (policy resident), as neither its log nor the job's offload: names a policy");
  check(job, learned.candidate, {});
  learned.sample = steady_step(log, job.batch.global, file);
  if (learned.sample.warm_up_only)
    learned.assumed.emplace_back("there are only a process' first lines: the step time holds the first iteration");
  learned.step_seconds = solve(learned.job, learned.sample.median, learned.candidate, file, learned);
  learned.job.compute.step_seconds = learned.step_seconds;
  learned.optimizer_logged = median_timer(log, "optimizer");
  learn_memory(log, file, learned);
  return learned;
}

}  // namespace ebb
