#include "reports/table.hpp"

#include <algorithm>

#include "models/errors.hpp"
#include "reports/wrap.hpp"

namespace ebb::reports {

void Table::add_row(std::vector<std::string> cells) {
  EBB_ASSERT(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

std::vector<std::string> Table::lines(std::optional<std::size_t> columns) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = width_of(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, width_of(row[i]));
    widths.push_back(width);
  }
  const auto line_of = [&](const auto& cell_of) {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& cell = cell_of(i);
      const std::string blanks(widths[i] - width_of(cell), ' ');
      if (i > 0) line += "  ";
      line += columns_[i].align == Align::right ? blanks + cell : cell + blanks;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
  };
  std::vector<std::string> lines = {line_of([&](std::size_t i) -> const std::string& { return columns_[i].title; })};
  std::size_t before = 0;  // the last column
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) before += widths[i] + 2;
  constexpr std::size_t kLeast = 16;
  const bool breaks = columns && columns_.back().align == Align::left && before + kLeast <= *columns;
  for (const auto& row : rows_) {
    lines.push_back(line_of([&](std::size_t i) -> const std::string& { return row[i]; }));
    if (!breaks || width_of(lines.back()) <= *columns) continue;
    std::vector<std::string> cells = row;
    cells.back().clear();
    std::string head = line_of([&](std::size_t i) -> const std::string& { return cells[i]; });
    lines.pop_back();
    for (const std::string& part : wrapped_lines(row.back(), *columns - before)) {
      head.append(before - width_of(head), ' ').append(part);
      lines.push_back(head);
      head.clear();
    }
  }
  return lines;
}

}  // namespace ebb::reports
