// execute_life() against reference_life(): on as many GPUs as there are, every recipe and policy of life_cases.hpp must
// give the reference's numbers bit for bit through init, skipped steps, a save, a reload, a resume and a start from
// parameters alone: every step, final state and parameters, the peaks of every part (also equal to the planned ones)
// and what is in the checkpoints; as it comes, and with poisoned memory and each stream slowed down in turn. Then what
// is refused: nothing stays allocated, and no half checkpoint stays behind. Needs GPUs, so it is no ctest. Run from the
// root of the tree: life_gpu_check [GPUS [all]]; without "all" each case slows another stream only.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>

#include "models/errors.hpp"
#include "replay/checkpoint/checkpoint.hpp"
#include "replay/life.hpp"
#include "tests/replay/life_cases.hpp"

namespace {

using namespace ebb;
using namespace ebb::replay;
using namespace ebb::test;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// One life: what was done, and what the checkpoint that it left holds.
struct Lived {
  std::vector<LifeNumbers> ranks;
  std::array<std::uint64_t, 4> content{};
};

std::array<std::uint64_t, 4> content_of(const std::string& directory) {
  const checkpoint::Reader reader(directory);
  return {reader.content(kExpAvg), reader.content(kExpAvgSq), reader.content(kMaster), reader.content(kParams)};
}

bool same(const StepNumbers& a, const StepNumbers& b) {
  // nan is not equal to itself, and how a skipped step's came about is nobody's business.
  const bool both_skipped = a.skipped && b.skipped;
  StepNumbers left = a, right = b;
  if (both_skipped) left.sum_of_squares = right.sum_of_squares = 0;
  return left == right;
}

std::string text_of(const StepNumbers& s) {
  return fmt::format("loss {}, sum of squares {}, digest {:x}, skipped {}, loss scale {}", s.loss, s.sum_of_squares,
                     s.digest, s.skipped, s.loss_scale);
}

std::string difference(const LifeNumbers& measured, const LifeNumbers& expected) {
  if (measured.steps.size() != expected.steps.size()) return "the number of steps";
  for (std::size_t s = 0; s < expected.steps.size(); ++s) {
    if (same(measured.steps[s], expected.steps[s])) continue;
    return fmt::format("step {}: {} instead of {}", s + 1, text_of(measured.steps[s]), text_of(expected.steps[s]));
  }
  if (measured.peaks.size() != expected.peaks.size()) return "the number of parts";
  for (std::size_t p = 0; p < expected.peaks.size(); ++p) {
    const PartPeak& a = measured.peaks[p];
    const PartPeak& b = expected.peaks[p];
    if (a.part == b.part && a.live == a.planned && a.planned == b.planned) continue;
    return fmt::format("part {} ({} and {}): {} B live, {} B planned here and {} B there", p, name_of(a.part),
                       name_of(b.part), a.live.value, a.planned.value, b.planned.value);
  }
  if (measured.final_state != expected.final_state) return "the final state";
  if (measured.parameters != expected.parameters) return "the final parameters";
  if (!(measured.place == expected.place)) return "the place in the training";
  return "";
}

std::string difference(const Lived& measured, const Lived& expected) {
  for (std::size_t r = 0; r < expected.ranks.size(); ++r) {
    const std::string text = difference(measured.ranks[r], expected.ranks[r]);
    if (!text.empty()) return fmt::format("rank {}: {}", r, text);
  }
  return measured.content == expected.content ? "" : "what is in the checkpoint";
}

/// A life's scripts. `own`: where it saves; `other`: a checkpoint of the same job that is there already.
struct Case {
  const char* name;
  std::vector<LifeEvent> (*events)(const std::string& own, const std::string& other);
};
constexpr Case kCases[] = {
    {"first step skipped, step skipped, saved, reloaded",
     [](const std::string& own, const std::string&) -> std::vector<LifeEvent> {
       return {init(), steps(4), save(own), steps(2), load(own), steps(2), save(own)};
     }},
    {"resumed",
     [](const std::string& own, const std::string& other) -> std::vector<LifeEvent> {
       return {init(), load(other), steps(2), save(own)};
     }},
    {"from parameters alone",
     [](const std::string& own, const std::string& other) -> std::vector<LifeEvent> {
       return {init(), load_params(other), steps(3), save(own)};
     }},
};

struct Way {
  const char* name;
  bool poison = false;
  std::optional<StreamKind> slow = std::nullopt;
};
constexpr Way kPlain{"plain"};
constexpr Way kSlow[] = {{"slow compute", true, StreamKind::compute},
                         {"slow h2d", true, StreamKind::h2d},
                         {"slow d2h", true, StreamKind::d2h},
                         {"slow comm", true, StreamKind::comm},
                         {"slow host", true, StreamKind::host}};

ExecuteOptions options_of(const Way& way) {
  ExecuteOptions options;
  options.compute = false;
  options.framework_time = false;
  options.poison = way.poison;
  options.slow = way.slow;
  return options;
}

class Check {
 public:
  explicit Check(bool all) : all_(all) {}

  void job(const LifeJob& what) {
    TrainingOptions training = what.training;
    training.injections = {{.step = 1, .rank = what.job.parallel.gpus - 1, .value = kNan},
                           {.step = 3, .rank = 0, .value = kInfinity}};
    for (const Candidate& candidate : life_candidates(owned_by_first(what.job))) {
      const std::string name =
          fmt::format("{} GPUs, {}, {}", what.job.parallel.gpus, what.name, test::text_of(candidate));
      std::optional<Life> life;
      try {
        life = life_of(what.job, candidate);
      } catch (const InputError& error) {
        fmt::print("skip   {}: {}\n", name, error.what());
        ++skipped_;
        continue;
      }
      check(name, *life, training);
    }
  }

  /// Nothing stays allocated, and nothing half done on the disk, when a life ends in an error.
  void errors() {
    const Life life = life_of(life_job(1), {.policy = Policy::full_reload});
    const TemporaryDirectory kept("life-gpu-kept");
    run(life, {}, {init(), steps(2), save(kept.path())}, kPlain);
    const std::string whole = checkpoint::list(kept.path()).front();
    std::string data;
    for (const auto& entry : std::filesystem::directory_iterator(whole))
      if (entry.path().extension() == ".safetensors") data = entry.path();
    std::fstream file(data, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(-1, std::ios::end);
    const char last = static_cast<char>(file.get());
    file.seekp(-1, std::ios::end);
    file.put(static_cast<char>(last ^ 1));
    file.close();
    refused("a changed byte in a checkpoint", life, {init(), steps(1), load(whole)}, "");
    const TemporaryDirectory place("life-gpu-place");
    const std::string blocked = place.path() + "/file";
    std::ofstream(blocked) << "not a directory";
    refused("a save into a file", life, {init(), steps(1), save(blocked)}, place.path());
    refused("a save before the first step", life, {init(), save(place.path())}, place.path());
  }

  int failed() const { return failed_; }
  void summary() const {
    fmt::print("{} ok, {} skipped, {}\n", passed_, skipped_,
               failed_ == 0 ? "all equal" : fmt::format("{} cases differ", failed_));
  }

 private:
  static std::vector<LifeNumbers> run(const Life& life, const TrainingOptions& training, std::vector<LifeEvent> events,
                                      const Way& way) {
    LifeRun done = execute_life(life.ranks, {.training = training, .events = std::move(events)}, options_of(way));
    for (const std::string& remark : done.remarks) fmt::print("    {}\n", remark);
    return std::move(done.ranks);
  }

  void check(const std::string& name, const Life& life, const TrainingOptions& training) {
    const TemporaryDirectory base("life-gpu-base");
    reference_life(life.ranks, {.training = training, .events = {init(), steps(5), save(base.path())}});
    for (const Case& what : kCases) {
      const TemporaryDirectory expected_at("life-gpu-expected");
      Lived expected;
      expected.ranks =
          reference_life(life.ranks, {.training = training, .events = what.events(expected_at.path(), base.path())});
      expected.content = content_of(expected_at.path());
      std::vector<Way> ways = {kPlain};
      if (all_) ways.insert(ways.end(), std::begin(kSlow), std::end(kSlow));
      if (!all_) ways.push_back(kSlow[turn_++ % std::size(kSlow)]);
      for (const Way& way : ways) {
        std::string problem;
        try {
          const TemporaryDirectory own("life-gpu");
          Lived measured;
          measured.ranks = run(life, training, what.events(own.path(), base.path()), way);
          measured.content = content_of(own.path());
          problem = difference(measured, expected);
        } catch (const std::exception& error) {
          problem = error.what();
        }
        report(fmt::format("{}, {}, {}", name, what.name, way.name), problem);
      }
    }
  }

  void refused(const char* what, const Life& life, std::vector<LifeEvent> events, const std::string& clean) {
    const std::size_t before = free_bytes();
    std::string problem = "it is not refused";
    try {
      run(life, {}, std::move(events), kPlain);
    } catch (const std::exception& error) {
      problem = "";
      fmt::print("    {}\n", error.what());
    }
    // Contexts and kernels stay: they were there before.
    if (free_bytes() + (std::size_t{64} << 20) < before) problem = "device memory stays allocated";
    if (!clean.empty()) {
      for (const auto& entry : std::filesystem::directory_iterator(clean))
        if (entry.path().extension() == ".partial") problem = "a half checkpoint stays behind";
    }
    report(what, problem);
  }

  static std::size_t free_bytes() {
    std::size_t free = 0;
    std::size_t total = 0;
    (void)cudaMemGetInfo(&free, &total);
    return free;
  }

  void report(const std::string& name, const std::string& problem) {
    fmt::print("{} {}{}\n", problem.empty() ? "ok    " : "FAILED", name, problem.empty() ? "" : ": " + problem);
    std::fflush(stdout);
    ++(problem.empty() ? passed_ : failed_);
  }

  bool all_ = false;
  int passed_ = 0;
  int skipped_ = 0;
  int failed_ = 0;
  std::size_t turn_ = 0;
};

/// Recipes with quantised parameters.
std::vector<LifeJob> quantized_jobs(int gpus) {
  std::vector<LifeJob> jobs;
  const auto add = [&](const char* name, Fp8Recipe recipe, Dtype moments, Columnwise columns) {
    Job job = life_job(gpus);
    job.model.vocab = 128;
    job.precision.fp8 = recipe;
    job.precision.fp8_param_gather = true;
    job.precision.fp8_columnwise = columns;
    job.precision.fp8_reuse_grad_buffer = false;
    job.precision.exp_avg = job.precision.exp_avg_sq = moments;
    job.precision.remainders = false;
    jobs.push_back({name, std::move(job), {}});
  };
  add("fp8 tensorwise", Fp8Recipe::tensorwise, Dtype::fp32, Columnwise::automatic);
  add("fp8 blockwise", Fp8Recipe::blockwise, Dtype::fp32, Columnwise::lazy);
  add("fp8 blockwise, eager columns, bf16 moments", Fp8Recipe::blockwise, Dtype::bf16, Columnwise::eager);
  add("mxfp8", Fp8Recipe::mxfp8, Dtype::fp32, Columnwise::automatic);
  add("mxfp8, bf16 moments", Fp8Recipe::mxfp8, Dtype::bf16, Columnwise::automatic);
  return jobs;
}

}  // namespace

int main(int argc, char** argv) {
  int gpus = 0;
  (void)cudaGetDeviceCount(&gpus);
  if (argc > 1) gpus = std::min(gpus, std::atoi(argv[1]));
  if (gpus == 0) {
    fmt::print("skip   everything: no GPU here\n");
    return 0;
  }
  Check check(argc > 2);
  for (const int ranks : {1, 2}) {
    if (ranks > gpus) {
      fmt::print("skip   lives of {} ranks: {} GPUs here\n", ranks, gpus);
      continue;
    }
    for (const LifeJob& job : life_jobs(ranks)) check.job(job);
    for (const LifeJob& job : quantized_jobs(ranks)) check.job(job);
  }
  check.errors();
  check.summary();
  return check.failed() == 0 ? 0 : 1;
}
