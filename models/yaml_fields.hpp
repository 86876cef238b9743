// Strict reading of one YAML mapping: every key must be known (else the nearest known key is offered), every value
// must have the right type, unit and range, and each complaint names file, line and column.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/nearest.hpp"
#include "models/units.hpp"
#include "models/yaml_tree.hpp"

namespace ebb {

/// A word of the file and what it stands for.
template <class Enum>
using Choice = std::pair<std::string_view, Enum>;

/// The word for `value`.
template <class Enum, std::size_t N>
std::string_view word_of(const Enum& value, const Choice<Enum> (&choices)[N]) {
  for (const auto& [word, known] : choices)
    if (known == value) return word;
  EBB_ASSERT(false);
  return "";
}

/// Readers take a key and leave `out` alone when the key is absent, so that defaults live in the structs. InputError
/// with the place of the value otherwise. Asking for a key that is not in `known` is a bug.
class YamlFields {
 public:
  /// `path` is the dotted name of the mapping in the file, "" for the whole file; it makes messages unambiguous.
  YamlFields(const YamlNode& node, std::string path, std::vector<std::string_view> known);

  const YamlNode* find(std::string_view key) const;
  const YamlNode& require(std::string_view key) const;
  /// A nested mapping, if present.
  std::optional<YamlFields> nested(std::string_view key, std::vector<std::string_view> known) const;
  const Place& place() const { return node_->place; }
  /// The place of a key's value when present, else of the mapping.
  const Place& place_of(std::string_view key) const;
  std::string full_name(std::string_view key) const;

  void text(std::string_view key, std::string& out) const;
  void boolean(std::string_view key, bool& out) const;
  /// A whole number in [least, most]. The usual `most` keeps the product of any two within int64.
  void count(std::string_view key, std::int64_t& out, std::int64_t least = 1, std::int64_t most = 1'000'000'000) const;
  void words(std::string_view key, std::vector<std::string>& out) const;

  template <class Enum>
  void choice(std::string_view key, Enum& out, std::span<const Choice<Enum>> choices) const {
    const YamlNode* node = find(key);
    if (node == nullptr) return;
    std::vector<std::string_view> names;
    for (const auto& [name, value] : choices) {
      names.push_back(name);
      if (scalar(key, *node) == name) {
        out = value;
        return;
      }
    }
    reject_choice(key, *node, names);
  }

  /// The scalar's text; InputError when the node is a list, a mapping or nothing.
  const std::string& scalar(std::string_view key, const YamlNode& node) const;

 private:
  [[noreturn]] void reject_choice(std::string_view key, const YamlNode& node,
                                  const std::vector<std::string_view>& names) const;

  const YamlNode* node_;
  std::string path_;
  std::vector<std::string_view> known_;
};

}  // namespace ebb
