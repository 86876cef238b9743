// What several reports for a terminal have in common. Internal to the writers.
#pragma once

#include <string>
#include <vector>

#include "reports/answer.hpp"
#include "reports/style.hpp"
#include "reports/table.hpp"

namespace ebb::reports {

void append_table(std::string& text, const Table& table, const Style& style);
std::string joined(const std::vector<std::string>& words);
std::string job_line(const Header& header);
/// "1000000000", "512 MiB, 0.35", "2 x 4194304".
std::string parameters_of(const Candidate& candidate);

/// One row a phase, and below it what the rows leave open.
void append_life(std::string& text, const std::vector<Phase>& phases, const Style& style);

}  // namespace ebb::reports
