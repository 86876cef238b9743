// Variables of a launch script and the expansion of its words. A variable that the script does not set may come from
// outside: it expands to a mark that names it, so that only who needs the value has to complain.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/shell_lexer.hpp"

namespace ebb {

/// An expanded word and where it was written: for the words of an array, in the array.
struct ShellText {
  std::string text;
  Place place;
};

/// The mark of an unset variable inside a text, between two control characters, which no text file holds.
inline constexpr char kUnsetBegin = '\x01';
inline constexpr char kUnsetEnd = '\x02';

/// Names in the marks of `text`.
std::vector<std::string> unset_names(std::string_view text);
/// `text` with "$NAME" for the marks.
std::string shown(std::string_view text);
/// `text` without marks: what the shell sees when nothing outside sets the variables.
std::string without_unset(std::string_view text);

class ShellVariables {
 public:
  void set(const std::string& name, std::vector<ShellText> values, bool appends);

  /// The words that `word` expands to. InputError when texts grow without bound or nest too deeply.
  std::vector<ShellText> expand(const ShellWord& word) const;
  /// One text: no splitting at blanks.
  std::string expand_text(const ShellWord& word) const;

 private:
  class Expander;
  std::map<std::string, std::vector<ShellText>> values_;
  std::size_t total_ = 0;             // characters of all values ever set
  mutable std::size_t expanded_ = 0;  // characters of all expansions: an upper bound on the work
};

}  // namespace ebb
