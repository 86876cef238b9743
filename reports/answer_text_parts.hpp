// What several reports for a terminal have in common. Internal to the writers.
#pragma once

#include <string>
#include <vector>

#include "reports/answer.hpp"
#include "reports/style.hpp"
#include "reports/table.hpp"

namespace ebb::reports {

/// Beside a cap of tidal's that keeps nothing.
inline constexpr const char* kKeepsNothing =
    "more keeps nothing on the device: gathered FP8 weights are quantised from masters that are read again";

void append_table(std::string& text, const Table& table, const Style& style);
std::string joined(const std::vector<std::string>& words);
/// "llama3-8b on 8 x hgx-h200, budget ...", and the same behind the job's name, wrapped.
std::string job_line(const Header& header);
std::string titled_job_line(const Header& header);
/// The flags, broken as a shell takes them; "" for none.
std::string flags_line(const Candidate& candidate, const Style& style);
/// What to paste, who takes it, why, and what to beware of; or why nothing fits and what would help.
std::string answer_lines(const PlanReport& report, const Style& style);
/// An obstacle as a table has room for it: "over by 1.189 GiB".
std::string short_reason(const std::string& reason);
/// One sentence without a line feed, or "".
std::string first_steps_line(const Candidate& candidate);
/// "worst case: ..."; nothing without assumptions.
std::string worst_case_lines(const std::vector<std::string>& assumptions);
std::string resume_line(const Candidate& candidate, const Header& header);
std::string wrapped_or_nothing(const std::string& line);
/// "1000000000", "512 MiB, 0.35", "2 x 4194304".
std::string parameters_of(const Candidate& candidate);

/// One row a phase, and below it what the rows leave open.
void append_life(std::string& text, const std::vector<Phase>& phases, const Style& style);
/// One row a phase: its peak and the largest part of it.
void append_phases(std::string& text, const std::vector<Phase>& phases, const Style& style);
/// All of one phase: what is alive at its peak, and what may come on top.
void append_phase(std::string& text, const Phase& phase, const Style& style);
/// Live bytes over the step, as a line of bars.
void append_curve(std::string& text, const Curve& curve);

}  // namespace ebb::reports
