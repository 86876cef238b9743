// A table for a terminal: columns as wide as their widest cell, numbers on the right, text on the left, two spaces
// between. Not here: what stands in it (answer_text.hpp) and colour (style.hpp).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace ebb::reports {

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::right;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Precondition: one cell for each column. Width counts UTF-8 characters.
  void add_row(std::vector<std::string> cells);

  /// One line for the titles and one for each row, without line feeds and without trailing blanks. With `columns` the
  /// words of the last column go on below each other, where a row would be wider.
  std::vector<std::string> lines(std::optional<std::size_t> columns = std::nullopt) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace ebb::reports
