// `ebb report FILES -o page.html`: documents and timelines of earlier runs as one page. What is of one job and one
// candidate is shown together: a plan's candidates with the timelines that are given, a prediction above its run, how
// far it was off where both are of the same plan, and why it takes that long. A page holds one answer to each question:
// a second is refused, and so is one of another job by the same name.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

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

class Page {
 public:
  void add(const std::string& name, const reports::PlanReport& plan) {
    answers(name, "a plan of " + plan.header.job);
    HtmlJob& job = jobs_.emplace_back();
    job.header = plan.header;
    owners_[plan.header.job] = name;
    job.plan = true;
    job.recommended = plan.recommended;
    job.selected = plan.recommended.value_or(0);
    job.shortfall = plan.shortfall;
    job.cures = plan.cures;
    for (const reports::Candidate& candidate : plan.candidates) job.candidates.emplace_back().answer = candidate;
    for (const reports::Candidate& candidate : plan.front) candidate_in(job, candidate).answer = candidate;
  }

  void add(const std::string& name, const reports::SimulateReport& simulated) {
    answers(name,
            fmt::format("a simulation of {} with {}", simulated.header.job, reports::label_of(simulated.candidate)));
    simulated_.emplace_back(name, simulated);
  }
  void add(const std::string& name, const reports::ExplainReport& explained) {
    answers(name, fmt::format("an explanation of {}{} with {}", explained.phase ? *explained.phase + " in " : "",
                              explained.header.job, reports::label_of(explained.candidate)));
    explained_.emplace_back(name, explained);
  }
  void add(const std::string& name, const reports::FitReport& fit) {
    answers(name, fmt::format("the {} {} of {}", fit.largest ? "most" : "least", fit.goal, fit.header.job));
    limits_.emplace_back(name, fit);
  }
  void add(const std::string& name, const reports::SweepReport& sweep) {
    const auto values_of = [](const reports::SweepRow& row) { return fmt::format("{}", fmt::join(row.values, ", ")); };
    answers(name, fmt::format("a sweep of {} over {}{}", sweep.job, fmt::join(sweep.keys, ", "),
                              sweep.rows.empty() ? ""
                                                 : fmt::format(" from {} to {}", values_of(sweep.rows.front()),
                                                               values_of(sweep.rows.back()))));
    sweeps_.push_back(sweep);
  }
  void add(const std::string& name, const reports::DiffReport& diff) {
    answers(name, fmt::format("a comparison of {} with {}", diff.job, diff.candidate));
    comparisons_.push_back(diff);
  }
  void add(const std::string& name, const TimelineFile& file) { timelines_.emplace_back(name, file); }

  /// After the plans, so that everything meets its own whatever the order of the files.
  void add_others() {
    for (const auto& [name, simulated] : simulated_) add_simulated(job_of(name, simulated.header), simulated);
    for (const auto& [name, explained] : explained_) add_explained(job_of(name, explained.header), explained);
    for (const auto& [name, fit] : limits_) job_of(name, fit.header).limits.push_back(fit);
    for (const auto& [name, file] : timelines_) {
      HtmlJob& job = job_of(file.job);
      HtmlCandidate& candidate = candidate_in(job, bare(file.candidate));
      auto& place = file.source == TimelineSource::measured ? candidate.measured : candidate.predicted;
      if (place)
        throw InputError(Place{name}, "a timeline of the same kind and candidate is there already: " + place->origin,
                         "give one of them");
      const RankTimeline& rank = slowest_of(file);
      place = html_timeline(rank, name);
      place->ranks = file.ranks.size();
      place->spans =
          reports::joined_spans(place->spans, std::max<std::size_t>(reports::kMostSpans / timelines_.size(), 1'000));
      job.selected = static_cast<std::size_t>(&candidate - job.candidates.data());
    }
    for (const auto& predicted : timelines_)
      for (const auto& measured : timelines_) compare(predicted, measured);
    for (const reports::DiffReport& diff : comparisons_) add_comparison(diff);
  }

  std::vector<HtmlJob> take() {
    for (HtmlJob& job : jobs_) reports::mark_front(job.candidates);
    return std::move(jobs_);
  }
  std::vector<reports::SweepReport> take_sweeps() { return std::move(sweeps_); }

 private:
  template <class Document>
  using Named = std::pair<std::string, Document>;

  /// InputError where another file has answered that already.
  void answers(const std::string& name, const std::string& what) {
    const auto [at, first] = answered_.emplace(what, name);
    if (!first)
      throw InputError(Place{name}, fmt::format("{} is there already: {}", what, at->second), "give one of them");
  }

  static void add_simulated(HtmlJob& job, const reports::SimulateReport& simulated) {
    HtmlCandidate& candidate = candidate_in(job, simulated.candidate);
    if (!candidate.known) candidate.answer = simulated.candidate;
    candidate.known = true;
    candidate.life = simulated.phases;
    candidate.host_limits = simulated.host_limits;
  }

  static void add_explained(HtmlJob& job, const reports::ExplainReport& explained) {
    HtmlCandidate& candidate = candidate_in(job, explained.candidate);
    if (!candidate.known) candidate.answer = explained.candidate;
    candidate.known = true;
    if (candidate.life.empty() && !explained.phase) candidate.life = explained.phases;
    if (explained.explanation) candidate.explanation = explained.explanation;
    // Where all phases are explained, each of them is.
    if (!explained.phase) candidate.peaks.clear();
    for (const reports::Phase& phase : explained.phases)
      if (std::none_of(candidate.peaks.begin(), candidate.peaks.end(), [&](const reports::Phase& known) {
            return known.name == phase.name && known.variant == phase.variant && known.later == phase.later;
          }))
        candidate.peaks.push_back(phase);
  }

  void compare(const Named<TimelineFile>& a, const Named<TimelineFile>& b) {
    const auto& [predicted_name, predicted] = a;
    const auto& [measured_name, measured] = b;
    if (predicted.source != TimelineSource::predicted || measured.source != TimelineSource::measured ||
        predicted.plan_digest != measured.plan_digest)
      return;
    HtmlCandidate& candidate = candidate_in(job_of(measured.job), bare(measured.candidate));
    candidate.diff = diff(predicted, measured, 0.05, predicted_name, measured_name);
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

  /// Of the job that the file `name` is about. InputError where another job of this name is in the page.
  HtmlJob& job_of(const std::string& name, const reports::Header& header) {
    HtmlJob& job = job_of(header.job);
    const auto [owner, first] = owners_.emplace(header.job, name);
    if (first) job.header = header;
    const reports::Header& known = job.header;
    if (header.model != known.model || header.cluster != known.cluster || header.gpus != known.gpus)
      throw InputError(
          Place{name},
          fmt::format("its {} is {} on {} x {}, while that of {} is {} on {} x {}", header.job, header.model,
                      header.gpus, header.cluster, owner->second, known.model, known.gpus, known.cluster),
          "give both names of their own");
    return job;
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
  std::map<std::string, std::string> answered_;  // what, and the file that it is in
  std::map<std::string, std::string> owners_;    // a job's name, and the file whose header it has
  std::vector<Named<reports::SimulateReport>> simulated_;
  std::vector<Named<reports::ExplainReport>> explained_;
  std::vector<Named<reports::FitReport>> limits_;
  std::vector<Named<TimelineFile>> timelines_;
  std::vector<reports::SweepReport> sweeps_;
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
  report.sweeps = page.take_sweeps();
  write_file(options.html_file, reports::to_html(report));
  return 0;
}

}  // namespace ebb::cli
