#include "reports/sweep_text.hpp"

#include "models/quantity_text.hpp"
#include "reports/answer_text_parts.hpp"
#include "reports/table.hpp"

namespace ebb::reports {

namespace {

/// What follows the place of the first of a message's lines.
std::string short_obstacle(const std::string& obstacle) {
  std::string text = obstacle.substr(0, obstacle.find('\n'));
  if (const std::size_t place = text.find(": "); place != std::string::npos && place < text.size() / 2)
    text = text.substr(place + 2);
  return text;
}

std::vector<std::string> cells_of(const SweepRow& row) {
  std::vector<std::string> cells = {row.fits ? "*" : " "};
  cells.insert(cells.end(), row.values.begin(), row.values.end());
  if (!row.candidate) {
    cells.insert(cells.end(), {"-", "-", "-", "-", "-", short_obstacle(row.obstacle)});
    return cells;
  }
  const Candidate& c = *row.candidate;
  cells.insert(cells.end(), {c.policy, parameters_of(c), format_bytes(c.device_peak), format_bytes(c.device_reserved),
                             format_seconds(c.step), row.fits ? "fits" : short_reason(c.reason)});
  return cells;
}

}  // namespace

std::string to_text(const SweepReport& report, const Style& style) {
  std::vector<Column> columns = {{"", Align::left}};
  for (const std::string& key : report.keys) columns.push_back({key});
  columns.insert(columns.end(),
                 {{"policy", Align::left}, {"chunk"}, {"allocated"}, {"needs <="}, {"step"}, {"", Align::left}});
  Table table(std::move(columns));
  for (const SweepRow& row : report.rows) table.add_row(cells_of(row));
  std::string text;
  append_table(text, table, style);
  return text;
}

}  // namespace ebb::reports
