// One number for one thing: the figures of `ebb plan`'s rows are those that `ebb simulate` and `ebb explain` show for
// the same candidate, and the phases of its life add up to them. Every job of the library, every row.
#include <algorithm>
#include <filesystem>

#include "models/job_yaml.hpp"
#include "planner/life.hpp"
#include "planner/robust.hpp"
#include "tests/catch.hpp"

using namespace ebb;

namespace {

std::vector<std::string> library_jobs() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(EBB_SOURCE_DIR "/models/jobs"))
    files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

bool in_step(Phase phase) {
  return phase == Phase::forward || phase == Phase::backward || phase == Phase::finalize || phase == Phase::step ||
         phase == Phase::gather;
}

template <class Choose, class Figure>
Bytes highest(const Life& life, const Choose& choose, const Figure& figure) {
  Bytes most{0};
  for (const LifePhase& phase : life.phases)
    if (choose(phase)) most = std::max(most, figure(phase));
  return most;
}

const auto kOwn = [](const LifePhase& phase) { return !phase.later; };
const auto kLater = [](const LifePhase& phase) { return phase.later; };
const auto kSteps = [](const LifePhase& phase) { return !phase.later && in_step(phase.phase); };
const auto kBound = [](const LifePhase& phase) { return phase.device_bound; };

void check_same(const Answer& row, const Answer& alone) {
  CHECK(alone.device_peak == row.device_peak);
  CHECK(alone.device_between_steps == row.device_between_steps);
  CHECK(alone.device_reserved == row.device_reserved);
  CHECK(alone.device_reserved_likely == row.device_reserved_likely);
  CHECK(alone.device_resume == row.device_resume);
  CHECK(alone.host_pinned_per_rank == row.host_pinned_per_rank);
  CHECK(alone.host_pinned_per_host == row.host_pinned_per_host);
  CHECK(alone.host_needed() == row.host_needed());
}

void check_phases(const Job& job, const Answer& answer, const Life& life) {
  CHECK(highest(life, kSteps, [](const LifePhase& p) { return p.device_peak; }) == answer.device_peak);
  CHECK(highest(life, kOwn, kBound) == answer.device_reserved);
  if (job.checkpoint.start == Start::resume)
    CHECK(answer.device_resume == answer.device_reserved);
  else
    CHECK(highest(life, kLater, kBound) == answer.device_resume);
  // Where the budget is too small, the highest moment and what is left after a step may differ.
  if (answer.fits_device)
    CHECK(highest(life, kSteps, [](const LifePhase& p) { return p.reserved_after; }) == answer.device_reserved_likely);
  CHECK(highest(life, kSteps, [](const LifePhase& p) { return p.host.pinned; }) == answer.host_pinned_per_rank);
  CHECK(highest(life, kOwn, [](const LifePhase& p) { return p.host.pinned_per_host; }) == answer.host_pinned_per_host);
  CHECK(highest(life, kOwn, [](const LifePhase& p) { return p.host.pinned_per_host + p.host.pageable_per_host; }) ==
        answer.host_needed());
}

}  // namespace

TEST_CASE("every row of every library job: plan, simulate and the phases of the life say the same bytes") {
  for (const std::string& file : library_jobs()) {
    const Job job = load_job(file);
    const SearchResult plan = search(job, {.cures = false, .likely = true, .resume = true});
    for (const Answer& row : plan.candidates) {
      INFO(job.name << ": " << name_of(row.candidate.policy) << " " << row.candidate.chunk_numel.value << " "
                    << row.candidate.chunk_size_mb << " MiB " << row.candidate.fraction);
      const Answer alone = evaluate(job, row.candidate);
      check_same(row, alone);
      check_phases(job, alone, life_of(job, alone));
    }
  }
}

TEST_CASE("a resume needs what the same job needs that begins with it") {
  for (const char* name : {"llama3-8b-hgx-h200", "measured-6.3b-1xh200", "nemotron4-15b-1xh200"}) {
    const Job job = load_job(std::string(EBB_SOURCE_DIR "/models/jobs/") + name + ".yaml");
    Job resumed = job;
    resumed.checkpoint.start = Start::resume;
    for (const Answer& row : search(job, {.cures = false, .likely = true, .resume = true}).candidates) {
      INFO(name << ": " << name_of(row.candidate.policy));
      CHECK(evaluate(resumed, row.candidate).device_reserved == row.device_resume);
    }
  }
}

TEST_CASE("a row of a robust plan is what one policy alone needs at its worst") {
  const Job job = load_job(EBB_SOURCE_DIR "/models/jobs/llama3-8b-hgx-h200.yaml");
  std::vector<std::string> assumptions;
  const Job worst = at_its_worst(job, assumptions);
  const SearchResult plan =
      search_robustly(worst, job.checkpoint.start, {.cures = false, .likely = true, .resume = true});
  for (const Answer& row : plan.candidates) {
    INFO(name_of(row.candidate.policy));
    const Answer alone = evaluate(worst, row.candidate, job.checkpoint.start);
    check_same(row, alone);
    CHECK(alone.step == row.step);
  }
}

TEST_CASE("a host budget is for all that must fit: to the byte of the phase that needs most") {
  Job job = load_job(EBB_SOURCE_DIR "/models/jobs/measured-1.8b-1xh200.yaml");
  const Candidate resident;
  const Answer roomy = evaluate(job, resident);
  // Nothing is pinned, and yet a save copies all state off the device: 14 B an element of 1,816,758,272.
  CHECK(roomy.host_pinned_per_host == Bytes{0});
  CHECK(roomy.host_needed() == Bytes{1'816'758'272LL * 14});
  CHECK(roomy.host_decides == Phase::save);
  job.budget.host = roomy.host_needed();
  CHECK(evaluate(job, resident).fits_host);
  job.budget.host = roomy.host_needed() - Bytes{1};
  const Answer tight = evaluate(job, resident);
  CHECK_FALSE(tight.fits_host);
  CHECK(tight.reason == "over the host budget by 1 B while a checkpoint is saved");
}
