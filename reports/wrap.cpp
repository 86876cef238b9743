#include "reports/wrap.hpp"

#include <algorithm>
#include <array>

namespace ebb::reports {

std::size_t width_of(std::string_view text) {
  const auto starts_character = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_character));
}

bool joins_unit(std::string_view text, std::size_t at) {
  constexpr std::array<std::string_view, 19> kUnits = {"B",  "KiB", "MiB",  "GiB",  "TiB", "kB", "MB",
                                                       "GB", "TB",  "GB/s", "TB/s", "us",  "ms", "s",
                                                       "ns", "%",   "h",    "min",  "x"};
  if (at == 0 || text[at] != ' ' || text[at - 1] < '0' || text[at - 1] > '9') return false;
  std::string_view word = text.substr(at + 1);
  word = word.substr(0, word.find(' '));
  while (!word.empty() && std::string_view(".,;:)").find(word.back()) != std::string_view::npos) word.remove_suffix(1);
  return std::find(kUnits.begin(), kUnits.end(), word) != kUnits.end();
}

std::vector<std::string> wrapped_lines(std::string_view text, std::size_t columns) {
  std::vector<std::string> lines;
  const std::string whole = wrapped(text, 0, "", columns);
  for (std::size_t begin = 0; begin < whole.size();) {
    const std::size_t end = whole.find('\n', begin);
    lines.push_back(whole.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string wrapped(std::string_view text, std::size_t indent, std::string_view join, std::size_t columns) {
  const std::size_t room = columns - (join.empty() ? 0 : width_of(join) + 1);
  std::string result;
  std::string line;
  bool words_in_line = false;
  while (!text.empty()) {
    std::size_t blank = std::min(text.find(' '), text.size());
    while (blank < text.size() && joins_unit(text, blank)) blank = std::min(text.find(' ', blank + 1), text.size());
    const std::string_view word = text.substr(0, blank);
    text.remove_prefix(std::min(blank + 1, text.size()));
    const bool last = text.empty();
    const std::size_t width = width_of(line) + (words_in_line ? 1 : 0) + width_of(word);
    if (words_in_line && width > (last ? columns : room)) {
      result += line;
      if (!join.empty()) result.append(" ").append(join);
      result += "\n";
      line.assign(indent, ' ');
      words_in_line = false;
    }
    if (words_in_line) line += " ";
    line += word;
    words_in_line = true;
  }
  return result + line + "\n";
}

}  // namespace ebb::reports
