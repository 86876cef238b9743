// The parts of an HTML report. Internal to its writer. Every function appends to the page; text is escaped inside.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/html.hpp"

namespace ebb::reports {

/// A table; cells are text, not HTML. The first `names` columns name the row, the others are figures, of which the last
/// may be words.
class HtmlTable {
 public:
  enum class Last { figure, words };
  HtmlTable(std::string caption, std::vector<std::string> head, std::size_t names = 1, Last last = Last::figure);
  void add_row(std::vector<std::string> cells, std::string_view row_class = "");
  void append_to(std::string& page) const;
  bool empty() const { return rows_.empty(); }

 private:
  struct Row {
    std::vector<std::string> cells;
    std::string row_class;
  };
  std::string caption_;
  std::vector<std::string> head_;
  std::size_t names_;
  std::size_t words_;  // the column of words; behind all: none
  std::vector<Row> rows_;
};

/// The first screen: what to do, the flags, what it costs.
void append_answer(std::string& page, const HtmlJob& job, std::size_t number);
/// The table of candidates, and what is known of each.
void append_candidates(std::string& page, const HtmlJob& job, std::size_t number);

/// Memory over the job's life: a drawing and a table, of one candidate.
void append_life_of(std::string& page, const HtmlCandidate& candidate, const Header& header);

/// How far the prediction was off.
void append_diff(std::string& page, const DiffReport& diff);
/// Busy time of each stream, so that a timeline can be read without its drawing.
void append_streams(std::string& page, const HtmlCandidate& candidate);

/// Where the step goes and what would change the answer; what is alive at the peaks.
void append_explanation(std::string& page, const HtmlCandidate& candidate);

/// How far a job can go.
void append_limits(std::string& page, const FitReport& fit);

/// All sweeps, with so many rows in all: a page with more would be too large to send.
inline constexpr std::size_t kMostSweepRowsShown = 1'500;
void append_sweeps(std::string& page, const std::vector<SweepReport>& sweeps);

/// Inputs, versions, hashes, the command.
void append_provenance(std::string& page, const HtmlReport& report);

/// What the script draws: JSON, and columns of numbers in a blob.
struct HtmlData {
  std::string json;  // may stand in a script element
  std::string blob;
};
HtmlData data_of(const HtmlReport& report);

}  // namespace ebb::reports
