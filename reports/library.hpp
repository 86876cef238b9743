// What the library holds: entries (models, clusters, policies) with their facts, as a table of all or one entry whole.
// Not here: where the facts come from (planner/library_facts.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "reports/style.hpp"
#include "reports/table.hpp"

namespace ebb::reports {

struct Fact {
  using Value = std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, std::vector<std::string>>;

  std::string key;     // dotted: "host_link.h2d"
  Value value;         // for JSON: bytes and elements as integers, rates a second, times in seconds
  std::string text;    // for people
  std::string source;  // "measured: ...", where the fact has one of its own
};

struct LibraryEntry {
  std::string name;
  std::vector<Fact> facts;

  /// nullptr: it has no such fact.
  const Fact* find(const std::string& key) const;
};

/// What stands in a column of the table of all.
struct FactColumn {
  std::string key;
  std::string title;
  Align align = Align::right;
};

struct LibraryReport {
  std::string kind;  // "models", "clusters", "policies"
  std::vector<LibraryEntry> entries;
  std::vector<FactColumn> columns;
  bool whole = false;  // the one entry with all its facts
  std::string ebb_version;
};

std::string to_text(const LibraryReport& report, const Style& style);
std::string to_json(const LibraryReport& report);

}  // namespace ebb::reports
