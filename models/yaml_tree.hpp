// A YAML document as a tree of plain nodes, each with its place. Built from the parser's events, so that limits hold
// while the file is being read: depth, number of nodes, no aliases (a small file cannot expand into a huge one), no
// tags, no duplicate keys, one document. Reading values out of the tree: yaml_fields.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/errors.hpp"

namespace ebb {

struct YamlEntry;

struct YamlNode {
  enum class Kind : std::uint8_t { null, scalar, sequence, map };
  Kind kind = Kind::null;
  std::string text;                // scalar
  std::vector<YamlEntry> entries;  // map: in file order; sequence: with empty keys
  Place place;

  const YamlNode* find(std::string_view key) const;
  /// For messages: `"text"`, "a list", "a mapping", "nothing".
  std::string description() const;
};

struct YamlEntry {
  std::string key;
  Place key_place;
  YamlNode value;
};

/// A job file is a few KiB. The parser may use 250 times the bytes of a hostile one.
inline constexpr std::int64_t kMostYamlBytes = 256 << 10;
inline constexpr std::size_t kMostYamlDepth = 32;
inline constexpr std::size_t kMostYamlNodes = 100'000;

/// The document in `text`. `file` is for places only. InputError on anything that is not one plain document.
YamlNode parse_yaml(const std::string& text, const std::string& file);

}  // namespace ebb
