// Writes `key: value` lines with nesting. What it writes, parse_yaml reads back to the same text.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ebb {

class YamlWriter {
 public:
  /// A word, number or quantity; quoted when it would not read back as the same plain text.
  void field(std::string_view key, std::string_view text);
  void field(std::string_view key, const std::string& text) { field(key, std::string_view(text)); }
  void field(std::string_view key, const char* text) { field(key, std::string_view(text)); }
  void field(std::string_view key, std::int64_t value) { field(key, std::to_string(value)); }
  void field(std::string_view key, double value);
  template <std::same_as<bool> Bool>
  void field(std::string_view key, Bool value) {
    field(key, std::string_view(value ? "true" : "false"));
  }
  void list(std::string_view key, const std::vector<std::string>& words);
  /// Fields until the matching close go into a mapping under `key`.
  void open(std::string_view key);
  void close() { indent_ -= 2; }
  const std::string& text() const { return text_; }

  /// `text` as one YAML scalar.
  static std::string scalar(std::string_view text);

 private:
  std::string text_;
  int indent_ = 0;
};

}  // namespace ebb
