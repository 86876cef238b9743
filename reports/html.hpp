// What an HTML report shows, as plain data, and its writer: one file that needs nothing else. The tables are in the
// page itself, so that it can be read without scripts; the script (reports/web/) adds what is drawn: the Pareto plot,
// timelines, memory and link use over the step.
//
// Not here: where the figures come from (planner/html_report.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/units.hpp"
#include "reports/answer.hpp"
#include "reports/diff.hpp"
#include "reports/explain.hpp"
#include "reports/fit.hpp"
#include "reports/sweep.hpp"

namespace ebb::reports {

/// What ops do, for the legend and the colours.
enum class HtmlFamily : std::uint8_t { compute, copy_in, copy_out, collective, kernel, host, waiting };
inline constexpr int kHtmlFamilies = 7;
std::string_view name_of(HtmlFamily family);

/// A row of the timeline. Ops of one stream follow each other; where two of one kind overlap (several communicators),
/// the stream has several lanes.
enum class HtmlStream : std::uint8_t { compute, h2d, d2h, comm, host };
inline constexpr int kHtmlStreams = 5;
std::string_view name_of(HtmlStream stream);

struct HtmlSpan {
  std::uint32_t op = 0;  // of the plan: the same in a prediction and in a run; of the first op, where several are drawn
  std::uint32_t ops = 1;
  HtmlStream stream = HtmlStream::compute;
  std::uint8_t lane = 0;    // of its stream
  std::uint8_t kind = 0;    // into HtmlTimeline::kinds
  std::uint8_t phase = 0;   // into HtmlTimeline::phases
  std::int64_t chunk = -1;  // none
  Bytes bytes{0};
  Ticks start{0};
  Ticks end{0};
};

struct HtmlKind {
  std::string name;
  HtmlFamily family = HtmlFamily::compute;
};

/// Bytes from `at` to the next point.
struct HtmlLevel {
  Ticks at{0};
  Bytes bytes{0};
};

struct HtmlTimeline {
  std::string origin;     // "simulated on hgx-h200", or a file
  std::int64_t rank = 0;  // the slowest of `ranks`
  std::size_t ranks = 1;
  Ticks step{0};
  std::vector<HtmlKind> kinds;
  std::vector<std::string> phases;
  std::vector<HtmlSpan> spans;  // by stream, lane, start
  std::size_t ops = 0;          // that the spans stand for
  std::vector<HtmlLevel> device;
  std::vector<HtmlLevel> pinned;
  std::vector<HtmlLevel> pageable;
  bool by_phase = false;  // the levels are peaks of phases: a file without its plan tells no more
};

/// One policy with its parameters, and all that is known of it.
struct HtmlCandidate {
  Candidate answer;
  bool known = true;  // its figures; otherwise `answer` says its policy and parameters alone
  bool on_front = false;
  std::vector<Phase> life;
  std::vector<std::string> host_limits;
  Curve curve;  // live bytes of the rank with the highest peak, tensor by tensor; may be empty
  std::optional<HtmlTimeline> predicted;
  std::optional<HtmlTimeline> measured;
  std::optional<DiffReport> diff;
  std::optional<Explanation> explanation;
  std::vector<Phase> peaks;  // phases with what is alive at their peaks
};

/// One job. Without candidates: limits alone.
struct HtmlJob {
  Header header;
  bool plan = false;  // an answer of `ebb plan`: something is recommended, or nothing fits
  std::vector<HtmlCandidate> candidates;
  std::optional<std::size_t> recommended;  // into candidates
  std::size_t selected = 0;                // at first
  std::string shortfall;
  std::vector<std::string> cures;
  std::optional<BytesPerSecond> link_in;  // what one GPU's link does alone
  std::optional<BytesPerSecond> link_out;
  std::vector<FitReport> limits;
};

struct HtmlReport {
  std::vector<HtmlJob> jobs;
  std::vector<SweepReport> sweeps;                         // of jobs that a document names by their files
  std::vector<std::pair<std::string, std::string>> facts;  // inputs, versions, hashes
  std::string command;                                     // that writes this report
  std::string job_text;                                    // the job with every default; may be empty
  std::string ebb_version;
};

/// "chunked 400,000,000".
std::string label_of(const Candidate& candidate);

/// Spans that a report holds at most; above, neighbours are drawn as one.
inline constexpr std::size_t kMostSpans = 200'000;

/// Says of each candidate with figures whether none needs less memory at no more time, or less time at no more memory.
void mark_front(std::vector<HtmlCandidate>& candidates);

/// The page. The same report is always the same bytes.
std::string to_html(const HtmlReport& report);

/// At most `most` spans: short neighbours on one lane joined. Preconditions: spans by stream, lane, start, without
/// overlap on a lane; most >= 1,000.
std::vector<HtmlSpan> joined_spans(const std::vector<HtmlSpan>& spans, std::size_t most);

}  // namespace ebb::reports
