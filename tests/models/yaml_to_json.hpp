// A YAML tree as an editor's validator sees it: scalars have the types that YAML 1.2's core schema gives them.
#pragma once

#include <charconv>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "models/yaml_tree.hpp"

namespace ebb::test {

inline nlohmann::json json_of_scalar(const std::string& text) {
  static const std::regex kInteger("[-+]?[0-9]+");
  static const std::regex kFloat(R"([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?)");
  if (text == "true" || text == "false") return text == "true";
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const char* end = text.data() + text.size();
  if (std::regex_match(text, kInteger)) {
    std::int64_t value = 0;
    if (std::from_chars(begin, end, value).ec == std::errc{}) return value;
  }
  if (std::regex_match(text, kFloat)) {
    double value = 0;
    if (std::from_chars(begin, end, value).ec != std::errc{}) return text;
    // JSON Schema counts 1e3 as an integer.
    constexpr double kExact = 9007199254740992;  // 2^53
    if (value == static_cast<double>(static_cast<std::int64_t>(std::min(std::abs(value), kExact))) ||
        value == -static_cast<double>(static_cast<std::int64_t>(std::min(std::abs(value), kExact))))
      return static_cast<std::int64_t>(value);
    return value;
  }
  return text;
}

inline nlohmann::json json_of(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return nullptr;
    case YamlNode::Kind::scalar:
      return json_of_scalar(node.text);
    case YamlNode::Kind::sequence: {
      nlohmann::json list = nlohmann::json::array();
      for (const YamlEntry& entry : node.entries) list.push_back(json_of(entry.value));
      return list;
    }
    case YamlNode::Kind::map: {
      nlohmann::json object = nlohmann::json::object();
      for (const YamlEntry& entry : node.entries) object[entry.key] = json_of(entry.value);
      return object;
    }
  }
  return nullptr;
}

}  // namespace ebb::test
