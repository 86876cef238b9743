#include "planner/html_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "models/job_yaml.hpp"
#include "models/text_file.hpp"
#include "planner/cli.hpp"
#include "planner/diff.hpp"
#include "planner/host_plans.hpp"
#include "planner/html_timeline.hpp"
#include "planner/prediction.hpp"

namespace ebb::cli {

namespace {

using reports::HtmlCandidate;
using reports::HtmlJob;
using reports::HtmlReport;
using reports::HtmlTimeline;

/// So many candidates have their timelines in a page; further points of the front have figures alone.
constexpr std::size_t kMostTimelines = 16;
/// A timeline of a candidate that is not selected at first is drawn with fewer spans and levels: a page has many.
constexpr std::size_t kSpansOfOthers = 4'000;
constexpr std::size_t kLevels = 1'500;
constexpr std::size_t kLevelsOfOthers = 300;

ebb::Candidate candidate_of(const reports::Candidate& c) {
  ebb::Candidate candidate;
  candidate.policy = parse_policy(c.policy, Place{"policy"});
  candidate.chunk_numel = c.chunk_numel.value_or(Numel{0});
  candidate.chunk_size_mb = c.chunk_size_mb.value_or(0);
  candidate.fraction = c.fraction.value_or(1.0);
  candidate.slots = c.slots.value_or(0);
  candidate.cap = c.cap.value_or(Bytes{0});
  return candidate;
}

std::size_t place_of(std::span<const Plan> plans, std::int64_t rank) {
  const auto found = std::find_if(plans.begin(), plans.end(), [&](const Plan& plan) { return plan.rank == rank; });
  EBB_ASSERT(found != plans.end());
  return static_cast<std::size_t>(found - plans.begin());
}

/// The place of the rank that ends last.
std::size_t slowest_of(const HostPlans& host) {
  const auto end_of = [](const Timeline& timeline) {
    return timeline.end.empty() ? Ticks{0} : *std::max_element(timeline.end.begin(), timeline.end.end());
  };
  const auto last = std::max_element(host.timelines.begin(), host.timelines.end(),
                                     [&](const Timeline& a, const Timeline& b) { return end_of(a) < end_of(b); });
  return static_cast<std::size_t>(last - host.timelines.begin());
}

/// How much of a timeline a page keeps.
struct Detail {
  std::size_t spans = 0;
  std::size_t levels = 0;
};

HtmlTimeline timeline_of(const HostPlans& host, std::size_t place, const RankTimeline& rank, const std::string& origin,
                         const Detail& detail) {
  HtmlTimeline timeline = html_timeline(host.plans[place], rank, origin, detail.levels);
  timeline.ranks = host.plans.size();
  timeline.spans = reports::joined_spans(timeline.spans, detail.spans);
  return timeline;
}

struct Run {
  std::string name;
  std::string text;
  TimelineFile file;
};

Run load_run(const std::string& name) {
  Run run{name, read_text_file(name, kMostPlanBytes), {}};
  run.file = timeline_file_from_json(run.text, name);
  require_run(run.file, name);
  return run;
}

bool is_of(const HtmlCandidate& candidate, const ebb::Candidate& wanted) {
  return candidate_of(candidate.answer) == wanted;
}

void add(HtmlJob& page, reports::Candidate candidate) { page.candidates.emplace_back().answer = std::move(candidate); }

/// Where the run's candidate is; one that is not in the answer joins it.
std::size_t find_or_add(HtmlJob& page, const HtmlRequest& request, const Run& run) {
  for (std::size_t i = 0; i < page.candidates.size(); ++i)
    if (is_of(page.candidates[i], run.file.candidate)) return i;
  const Place place{run.name};
  check(request.job, run.file.candidate, {place, place, place, place, place, place});
  add(page, report_of(evaluate(request.job, run.file.candidate)));
  return page.candidates.size() - 1;
}

void add_life(HtmlCandidate& candidate, const Job& job, const Answer& answer, std::size_t levels) {
  Life life = life_of(job, answer);
  life.curve = thinned(life.curve, levels);
  candidate.life = report_of(life);
  candidate.host_limits = life.host_limits;
  candidate.curve = curve_of(job, life);
}

/// Everything but the figures of the answer.
void complete(HtmlCandidate& candidate, const HtmlRequest& request, const Detail& detail, const Run* run) {
  const ebb::Candidate which = candidate_of(candidate.answer);
  add_life(candidate, request.job, evaluate(request.job, which), detail.levels);
  const HostPlans host = host_plans(request.job, which);
  std::size_t place = slowest_of(host);
  if (run != nullptr) {
    const TimelineFile predicted = prediction_of(host.plans, host.timelines, request.job.cluster.name);
    candidate.diff = diff(predicted, run->file, 0.05, "the prediction for this job", run->name);
    candidate.diff->ebb_version = EBB_VERSION;
    place = place_of(host.plans, candidate.diff->decides().rank);
    candidate.measured = timeline_of(host, place, run->file.ranks[place], run->name, detail);
  }
  candidate.predicted = timeline_of(host, place, rank_timeline(host.plans[place], host.timelines[place]),
                                    "simulated on " + request.job.cluster.name, detail);
}

std::size_t least_needing(const std::vector<HtmlCandidate>& candidates) {
  const auto least = std::min_element(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    return a.answer.device_reserved < b.answer.device_reserved;
  });
  return static_cast<std::size_t>(least - candidates.begin());
}

std::optional<BytesPerSecond> rate_of(const Sourced<BytesPerSecond>& rate) { return rate.value; }

void add_facts(HtmlReport& report, const HtmlRequest& request, const Run* run) {
  const Job& job = request.job;
  report.command = request.command;
  report.ebb_version = EBB_VERSION;
  report.job_text = write_job(job);
  std::string inputs = report.job_text;
  report.facts = {{"Ebb", EBB_VERSION},
                  {"job", fmt::format("{}, with every default (below)", job.name)},
                  {"hash of the job", "XXH3-128 " + hash_of(report.job_text)}};
  if (run != nullptr) {
    report.facts.emplace_back("measured timeline", run->name);
    report.facts.emplace_back("hash of the measured timeline", "XXH3-128 " + hash_of(run->text));
    inputs += run->text;
  }
  report.facts.emplace_back("hash of all inputs", "XXH3-128 " + hash_of(inputs));
  report.facts.emplace_back("model", job.model.name);
  report.facts.emplace_back("cluster", job.cluster.name);
  report.facts.emplace_back("link to the device", job.cluster.host_link.h2d.source);
  report.facts.emplace_back("link to the host", job.cluster.host_link.d2h.source);
  report.facts.emplace_back("forward and backward", job.compute.step_seconds
                                                        ? "as the job states"
                                                        : "roofline at the cluster's achieved rates");
  if (!request.worst_case.empty())
    report.facts.emplace_back("assumed at its worst", fmt::format("{}", fmt::join(request.worst_case, "; ")));
}

/// Fills in everything that hangs on a candidate.
HtmlReport finish(const HtmlRequest& request, HtmlJob page) {
  std::optional<Run> run;
  if (request.measured_file) run = load_run(*request.measured_file);
  page.selected = page.recommended.value_or(least_needing(page.candidates));
  if (run) page.selected = find_or_add(page, request, *run);
  reports::mark_front(page.candidates);
  std::size_t spans = reports::kMostSpans;
  for (std::size_t i = 0; i < std::min(page.candidates.size(), kMostTimelines); ++i) {
    if (i == page.selected) continue;
    complete(page.candidates[i], request, {kSpansOfOthers, kLevelsOfOthers}, nullptr);
    spans -= page.candidates[i].predicted->spans.size();
  }
  complete(page.candidates[page.selected], request, {spans / (run ? 2 : 1), kLevels}, run ? &*run : nullptr);
  page.link_in = rate_of(request.job.cluster.host_link.h2d);
  page.link_out = rate_of(request.job.cluster.host_link.d2h);
  HtmlReport report;
  report.jobs.push_back(std::move(page));
  add_facts(report, request, run ? &*run : nullptr);
  return report;
}

}  // namespace

std::string hash_of(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

HtmlReport html_report(const HtmlRequest& request, const reports::PlanReport& plan) {
  HtmlJob page;
  page.header = plan.header;
  page.plan = true;
  page.recommended = plan.recommended;
  page.shortfall = plan.shortfall;
  page.cures = plan.cures;
  for (const reports::Candidate& candidate : plan.candidates) add(page, candidate);
  for (const reports::Candidate& candidate : plan.front) {
    const bool known = std::any_of(page.candidates.begin(), page.candidates.end(),
                                   [&](const HtmlCandidate& other) { return is_of(other, candidate_of(candidate)); });
    if (!known) add(page, candidate);
  }
  return finish(request, std::move(page));
}

HtmlReport html_report(const HtmlRequest& request, const reports::SimulateReport& simulated) {
  HtmlJob page;
  page.header = simulated.header;
  add(page, simulated.candidate);
  return finish(request, std::move(page));
}

}  // namespace ebb::cli
