// The words and operators of a shell script, as far as launch scripts of training jobs use them. Expansion of
// variables and the meaning of commands are shell_script.hpp's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/errors.hpp"

namespace ebb {

/// A part of a word under one kind of quoting. `literal`: as it is; otherwise $... in it expands.
struct ShellPiece {
  std::string text;
  bool literal = false;
  bool quoted = false;  // what expands is not split at blanks
};

struct ShellWord {
  std::vector<ShellPiece> pieces;
  Place place;
};

struct ShellToken {
  enum class Kind : std::uint8_t { word, array, separator };
  Kind kind = Kind::word;
  ShellWord word;                // word; array: the name alone
  bool appends = false;          // array: NAME+=( ... )
  std::vector<ShellWord> items;  // array
  std::string separator;         // "\n", ";", ";;", "&&", "||", "|", "&", "(" or ")"
};

/// Comments, redirections and here-documents are left out. InputError where a quote or bracket is never closed.
std::vector<ShellToken> lex_shell(std::string_view text, const std::string& file);

}  // namespace ebb
