#include "reports/wrap.hpp"

#include <algorithm>

namespace ebb::reports {

std::size_t width_of(std::string_view text) {
  const auto starts_character = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_character));
}

std::string wrapped(std::string_view text, std::size_t indent, std::string_view join, std::size_t columns) {
  const std::size_t room = columns - (join.empty() ? 0 : width_of(join) + 1);
  std::string result;
  std::string line;
  bool words_in_line = false;
  while (!text.empty()) {
    const std::size_t blank = std::min(text.find(' '), text.size());
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
