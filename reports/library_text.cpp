#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "reports/library.hpp"
#include "reports/wrap.hpp"

namespace ebb::reports {

const Fact* LibraryEntry::find(const std::string& key) const {
  const auto at = std::find_if(facts.begin(), facts.end(), [&key](const Fact& fact) { return fact.key == key; });
  return at == facts.end() ? nullptr : &*at;
}

namespace {

constexpr std::size_t kValue = 16;  // a longer value has lines of its own

std::string table_text(const LibraryReport& report, const Style& style) {
  std::vector<Column> columns = {{"name", Align::left}};
  for (const FactColumn& column : report.columns) columns.push_back({column.title, column.align});
  Table table(columns);
  for (const LibraryEntry& entry : report.entries) {
    std::vector<std::string> cells = {entry.name};
    for (const FactColumn& column : report.columns) {
      const Fact* fact = entry.find(column.key);
      cells.push_back(fact == nullptr ? "-" : fact->text);
    }
    table.add_row(std::move(cells));
  }
  std::string text;
  const std::vector<std::string> lines = table.lines(style.terminal ? std::optional(kColumns) : std::nullopt);
  for (const std::string& line : lines) text += (&line == lines.data() ? style.dim(line) : line) + "\n";
  const std::string one = report.kind == "policies" ? "POLICY" : report.kind == "models" ? "MODEL" : "CLUSTER";
  return text + fmt::format("\nebb {} show {} has one of them whole.\n", report.kind, one);
}

std::string entry_text(const LibraryEntry& entry, const Style& style) {
  std::size_t key = 0, value = 0;
  const bool sourced =
      std::any_of(entry.facts.begin(), entry.facts.end(), [](const Fact& fact) { return !fact.source.empty(); });
  for (const Fact& fact : entry.facts) {
    key = std::max(key, fact.key.size());
    if (!fact.source.empty() && fact.text.size() <= kValue) value = std::max(value, fact.text.size());
  }
  std::string text = style.bold(entry.name) + "\n";
  for (const Fact& fact : entry.facts) {
    // With a source: the value, then the source beside it, below a value that is too wide for its column.
    const bool beside = sourced && !fact.source.empty();
    const std::size_t at = key + 2 + (beside ? value + 2 : 0);
    std::string line = fmt::format("{:<{}}  ", fact.key, key);
    if (beside && fact.text.size() > value) {
      text += line + fact.text + "\n";
      line = std::string(at, ' ');
    } else if (beside) {
      line += fmt::format("{:<{}}  ", fact.text, value);
    }
    for (const std::string& part : wrapped_lines(beside ? fact.source : fact.text, kColumns - at)) {
      text += line + part + "\n";
      line = std::string(at, ' ');
    }
  }
  return text;
}

}  // namespace

std::string to_text(const LibraryReport& report, const Style& style) {
  return report.whole ? entry_text(report.entries.front(), style) : table_text(report, style);
}

}  // namespace ebb::reports
