#include "models/yaml_writer.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ebb {

std::string YamlWriter::scalar(std::string_view text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '/' || c == '-' || c == '+';
  });
  // A leading "-" would be a list item, and yaml-cpp takes "null", "Null", "NULL" for nothing.
  const bool word = plain && text.front() != '-' && !(text.size() == 4 && (text[0] == 'n' || text[0] == 'N'));
  if (word) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      quoted += {'\\', c};
    else if (byte < 0x20 || byte == 0x7f)
      quoted += fmt::format("\\x{:02x}", byte);
    else
      quoted += c;
  }
  return quoted + '"';
}

void YamlWriter::field(std::string_view key, std::string_view text) {
  text_ += fmt::format("{:{}}{}: {}\n", "", indent_, key, scalar(text));
}

void YamlWriter::field(std::string_view key, double value) { field(key, fmt::format("{}", value)); }

void YamlWriter::list(std::string_view key, const std::vector<std::string>& words) {
  std::string items;
  for (const std::string& word : words) items += (items.empty() ? "" : ", ") + scalar(word);
  text_ += fmt::format("{:{}}{}: [{}]\n", "", indent_, key, items);
}

void YamlWriter::open(std::string_view key) {
  text_ += fmt::format("{:{}}{}:\n", "", indent_, key);
  indent_ += 2;
}

}  // namespace ebb
