#include <algorithm>

#include "models/errors.hpp"
#include "reports/html_blob.hpp"
#include "reports/html_parts.hpp"

namespace ebb::reports {

namespace {

void append_cell(std::string& page, const char* tag, bool name, const std::string& text) {
  const bool row_head = name && std::string_view(tag) == "td";
  page.append("<").append(row_head ? "th scope=\"row\"" : tag);
  if (std::string_view(tag) == "th") page += " scope=\"col\"";
  if (!name) page += " class=\"n\"";
  page.append(">").append(escaped(text)).append(row_head ? "</th>" : std::string_view(tag) == "th" ? "</th>" : "</td>");
}

}  // namespace

HtmlTable::HtmlTable(std::string caption, std::vector<std::string> head, std::size_t names)
    : caption_(std::move(caption)), head_(std::move(head)), names_(names) {}

void HtmlTable::add_row(std::vector<std::string> cells, std::string_view row_class) {
  EBB_ASSERT(cells.size() == head_.size());
  rows_.push_back({std::move(cells), std::string(row_class)});
}

void HtmlTable::append_to(std::string& page) const {
  page += "<div class=\"table\"><table>";
  if (!caption_.empty()) page.append("<caption>").append(escaped(caption_)).append("</caption>");
  page += "<thead><tr>";
  for (std::size_t i = 0; i < head_.size(); ++i) append_cell(page, "th", i < names_, head_[i]);
  page += "</tr></thead><tbody>\n";
  for (const Row& row : rows_) {
    page += row.row_class.empty() ? "<tr>" : "<tr class=\"" + escaped(row.row_class) + "\">";
    for (std::size_t i = 0; i < row.cells.size(); ++i) append_cell(page, "td", i < names_, row.cells[i]);
    page += "</tr>\n";
  }
  page += "</tbody></table></div>\n";
}

}  // namespace ebb::reports
