#include <algorithm>

#include "models/errors.hpp"
#include "reports/html_blob.hpp"
#include "reports/html_parts.hpp"

namespace ebb::reports {

namespace {

enum class Cell { name, figure, words };

void append_cell(std::string& page, bool head, Cell cell, const std::string& text) {
  const bool th = head || cell == Cell::name;
  page += head ? "<th scope=\"col\"" : th ? "<th scope=\"row\"" : "<td";
  if (cell == Cell::figure) page += " class=\"n\"";
  page.append(">").append(escaped(text)).append(th ? "</th>" : "</td>");
}

}  // namespace

HtmlTable::HtmlTable(std::string caption, std::vector<std::string> head, std::size_t names, Last last)
    : caption_(std::move(caption)),
      head_(std::move(head)),
      names_(names),
      words_(last == Last::words ? head_.size() - 1 : head_.size()) {}

void HtmlTable::add_row(std::vector<std::string> cells, std::string_view row_class) {
  EBB_ASSERT(cells.size() == head_.size());
  rows_.push_back({std::move(cells), std::string(row_class)});
}

void HtmlTable::append_to(std::string& page) const {
  const auto kind_of = [this](std::size_t column) {
    return column < names_ ? Cell::name : column == words_ ? Cell::words : Cell::figure;
  };
  page += "<div class=\"table\"><table>";
  if (!caption_.empty()) page.append("<caption>").append(escaped(caption_)).append("</caption>");
  page += "<thead><tr>";
  for (std::size_t i = 0; i < head_.size(); ++i) append_cell(page, true, kind_of(i), head_[i]);
  page += "</tr></thead><tbody>\n";
  for (const Row& row : rows_) {
    page += row.row_class.empty() ? "<tr>" : "<tr class=\"" + escaped(row.row_class) + "\">";
    for (std::size_t i = 0; i < row.cells.size(); ++i) append_cell(page, false, kind_of(i), row.cells[i]);
    page += "</tr>\n";
  }
  page += "</tbody></table></div>\n";
}

}  // namespace ebb::reports
