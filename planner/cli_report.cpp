// `ebb report FILES -o page.html`: documents and timelines of earlier runs as one page. What is of one job and one
// candidate is shown together: a plan's candidates with the timelines that are given, a prediction above its run, and
// how far it was off where both are of the same plan.
#include <fmt/format.h>

#include <algorithm>

#include "models/errors.hpp"
#include "models/text_file.hpp"
#include "planner/cli.hpp"
#include "planner/cli_output.hpp"
#include "planner/diff.hpp"
#include "planner/html_documents.hpp"
#include "planner/html_report.hpp"
#include "planner/html_timeline.hpp"

namespace ebb::cli {

namespace {

using reports::HtmlCandidate;
using reports::HtmlJob;
using reports::HtmlReport;

bool same(const reports::Candidate& a, const reports::Candidate& b) {
  return a.policy == b.policy && a.chunk_numel == b.chunk_numel && a.chunk_size_mb == b.chunk_size_mb &&
         a.fraction == b.fraction && a.slots == b.slots && a.cap == b.cap;
}

/// Policy and parameters alone.
reports::Candidate bare(const ebb::Candidate& candidate) {
  Answer answer;
  answer.candidate = candidate;
  const reports::Candidate all = report_of(answer);
  reports::Candidate some;
  some.policy = all.policy;
  some.chunk_numel = all.chunk_numel;
  some.chunk_size_mb = all.chunk_size_mb;
  some.fraction = all.fraction;
  some.slots = all.slots;
  some.cap = all.cap;
  return some;
}

struct Named {
  std::string name;
  TimelineFile file;
};

class Page {
 public:
  void add(const std::string&, const reports::PlanReport& plan) {
    HtmlJob& job = jobs_.emplace_back();
    job.header = plan.header;
    job.plan = true;
    job.recommended = plan.recommended;
    job.selected = plan.recommended.value_or(0);
    job.shortfall = plan.shortfall;
    job.cures = plan.cures;
    for (const reports::Candidate& candidate : plan.candidates) job.candidates.emplace_back().answer = candidate;
    for (const reports::Candidate& candidate : plan.front) candidate_in(job, candidate).answer = candidate;
  }

  void add(const std::string&, const reports::SimulateReport& simulated) { simulated_.push_back(simulated); }

  void add(const std::string&, const reports::DiffReport& diff) { comparisons_.push_back(diff); }

  void add(const std::string& name, const TimelineFile& file) { timelines_.push_back({name, file}); }

  /// After the plans, so that everything meets its own whatever the order of the files.
  void add_others() {
    for (const reports::SimulateReport& simulated : simulated_) add_simulated(simulated);
    for (const Named& one : timelines_) {
      HtmlJob& job = job_of(one.file.job);
      HtmlCandidate& candidate = candidate_in(job, bare(one.file.candidate));
      auto& place = one.file.source == TimelineSource::measured ? candidate.measured : candidate.predicted;
      if (place) throw InputError(Place{one.name}, "a timeline of the same kind and candidate is there already", "");
      const RankTimeline& rank = slowest_of(one.file);
      place = html_timeline(rank, one.name);
      place->ranks = one.file.ranks.size();
      place->spans =
          reports::joined_spans(place->spans, std::max<std::size_t>(reports::kMostSpans / timelines_.size(), 1'000));
      job.selected = static_cast<std::size_t>(&candidate - job.candidates.data());
    }
    for (const Named& predicted : timelines_)
      for (const Named& measured : timelines_) compare(predicted, measured);
    for (const reports::DiffReport& diff : comparisons_) add_comparison(diff);
  }

  std::vector<HtmlJob> take() {
    for (HtmlJob& job : jobs_) reports::mark_front(job.candidates);
    return std::move(jobs_);
  }

 private:
  void add_simulated(const reports::SimulateReport& simulated) {
    HtmlJob& job = job_of(simulated.header.job);
    if (job.header.model.empty()) job.header = simulated.header;
    HtmlCandidate& candidate = candidate_in(job, simulated.candidate);
    if (!candidate.known) candidate.answer = simulated.candidate;
    candidate.known = true;
    candidate.life = simulated.phases;
    candidate.host_limits = simulated.host_limits;
  }

  void compare(const Named& predicted, const Named& measured) {
    if (predicted.file.source != TimelineSource::predicted || measured.file.source != TimelineSource::measured ||
        predicted.file.plan_digest != measured.file.plan_digest)
      return;
    HtmlCandidate& candidate = candidate_in(job_of(measured.file.job), bare(measured.file.candidate));
    candidate.diff = diff(predicted.file, measured.file, 0.05, predicted.name, measured.name);
    candidate.diff->ebb_version = EBB_VERSION;
  }

  /// Unless the timelines that it compares are here, too.
  void add_comparison(const reports::DiffReport& diff) {
    HtmlJob& job = job_of(diff.job);
    for (const HtmlCandidate& candidate : job.candidates)
      if (candidate.diff && candidate.diff->candidate == diff.candidate) return;
    HtmlCandidate& candidate = job.candidates.emplace_back();
    candidate.known = false;
    candidate.answer.policy = diff.candidate;
    candidate.diff = diff;
  }

  HtmlJob& job_of(const std::string& name) {
    const auto found =
        std::find_if(jobs_.begin(), jobs_.end(), [&](const HtmlJob& job) { return job.header.job == name; });
    if (found != jobs_.end()) return *found;
    jobs_.emplace_back().header.job = name;
    return jobs_.back();
  }

  static HtmlCandidate& candidate_in(HtmlJob& job, const reports::Candidate& wanted) {
    for (HtmlCandidate& candidate : job.candidates)
      if (same(candidate.answer, wanted)) return candidate;
    HtmlCandidate& candidate = job.candidates.emplace_back();
    candidate.answer = wanted;
    candidate.known = !wanted.deciding_phase.empty();
    return candidate;
  }

  std::vector<HtmlJob> jobs_;
  std::vector<reports::SimulateReport> simulated_;
  std::vector<Named> timelines_;
  std::vector<reports::DiffReport> comparisons_;
};

}  // namespace

int run_report(const ReportOptions& options) {
  check_outputs(options.files, {{"-o", options.html_file}});
  Page page;
  HtmlReport report;
  report.ebb_version = EBB_VERSION;
  report.command = html_command(options);
  report.facts = {{"Ebb", EBB_VERSION}};
  std::string inputs;
  for (const std::string& file : options.files) {
    const std::string text = read_text_file(file, kMostPlanBytes);
    std::visit([&](const auto& document) { page.add(file, document); }, document_from_json(text, file));
    report.facts.emplace_back(file, "XXH3-128 " + hash_of(text));
    inputs += text;
  }
  report.facts.emplace_back("hash of all inputs", "XXH3-128 " + hash_of(inputs));
  page.add_others();
  report.jobs = page.take();
  write_file(options.html_file, reports::to_html(report));
  return 0;
}

}  // namespace ebb::cli
