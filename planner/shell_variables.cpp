#include "planner/shell_variables.hpp"

#include <algorithm>
#include <utility>

#include "planner/shell_arithmetic.hpp"

namespace ebb {

namespace {

constexpr std::size_t kMostText = 1 << 20;
constexpr int kMostDepth = 16;

bool is_name_character(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::string unset(std::string_view name) {
  std::string mark(1, kUnsetBegin);
  return mark.append(name).append(1, kUnsetEnd);
}

template <class Name>
std::string replace_marks(std::string_view text, const Name& replacement) {
  std::string result;
  while (!text.empty()) {
    const std::size_t begin = std::min(text.find(kUnsetBegin), text.size());
    result += text.substr(0, begin);
    text.remove_prefix(begin);
    if (text.empty()) break;
    const std::size_t end = std::min(text.find(kUnsetEnd), text.size() - 1);
    result += replacement(text.substr(1, end - 1));
    text.remove_prefix(end + 1);
  }
  return result;
}

}  // namespace

std::vector<std::string> unset_names(std::string_view text) {
  std::vector<std::string> names;
  replace_marks(text, [&](std::string_view name) {
    names.emplace_back(name);
    return std::string();
  });
  return names;
}

std::string shown(std::string_view text) {
  return replace_marks(text, [](std::string_view name) { return std::string("$").append(name); });
}

std::string without_unset(std::string_view text) {
  return replace_marks(text, [](std::string_view) { return std::string(); });
}

/// Expands one word into `words`.
class ShellVariables::Expander {
 public:
  Expander(const ShellVariables& variables, const Place& place, int depth, bool splits)
      : variables_(variables), place_(place), depth_(depth), splits_(splits) {
    if (depth > kMostDepth) throw InputError(place, "expansions are nested too deeply", "write the values out");
  }

  void piece(const ShellPiece& piece) {
    has_word_ = has_word_ || piece.quoted;
    if (piece.literal)
      add(piece.text);
    else
      text(piece.text, piece.quoted);
  }

  std::vector<ShellText> finish() {
    end_word();
    return std::move(words_);
  }

 private:
  void add(std::string_view text) {
    variables_.expanded_ += text.size();
    if (word_.size() + text.size() > kMostText || variables_.expanded_ > 32 * kMostText)
      throw InputError(place_, "the script's texts grow beyond any use", "write the values out");
    word_ += text;
    has_word_ = has_word_ || !text.empty();
  }

  void end_word() {
    if (has_word_) words_.push_back({word_, word_place_.line > 0 ? word_place_ : place_});
    word_.clear();
    has_word_ = false;
    word_place_ = {};
  }

  void text(std::string_view text, bool quoted) {
    while (!text.empty()) {
      const std::size_t dollar = std::min(text.find_first_of("$`"), text.size());
      add(text.substr(0, dollar));
      text.remove_prefix(dollar);
      if (!text.empty()) text.remove_prefix(expansion(text, quoted));
    }
  }

  /// Adds what `text` begins with and returns how long that is.
  std::size_t expansion(std::string_view text, bool quoted) {
    if (text.starts_with("$((") && text.find("))") != std::string_view::npos) {
      const std::size_t end = closing(text, 1);
      add(arithmetic(text.substr(3, end > 5 ? end - 5 : 0)));
      return end;
    }
    if (text[0] == '`' || text.starts_with("$(")) {
      add(unset("(...)"));  // a command's output
      return text[0] == '`' ? std::min(text.find('`', 1), text.size() - 1) + 1 : closing(text, 1);
    }
    if (text.starts_with("${")) {
      const std::size_t end = closing(text, 1);
      braces(text.substr(2, end > 3 ? end - 3 : 0), quoted);
      return end;
    }
    std::size_t end = 1;
    while (end < text.size() && is_name_character(text[end])) ++end;
    if (end > 1 && text[1] >= '0' && text[1] <= '9') end = 2;
    if (end == 1 && text.size() > 1 && std::string_view("@*#?!$-").find(text[1]) != std::string_view::npos) end = 2;
    if (end == 1) {
      add("$");
      return 1;
    }
    value(text.substr(1, end - 1), quoted, false);
    return end;
  }

  /// One past the bracket that closes the one at text[open].
  static std::size_t closing(std::string_view text, std::size_t open) {
    int depth = 0;
    for (std::size_t i = open; i < text.size(); ++i) {
      if (text[i] == '{' || text[i] == '(') ++depth;
      if (text[i] == '}' || text[i] == ')') --depth;
      if (depth == 0) return i + 1;
    }
    return text.size();
  }

  /// The inside of ${...}: NAME, NAME[@], NAME:-other, NAME-other, NAME:=other, NAME:+other. What else there is
  /// (lengths, patterns) is as if unset.
  void braces(std::string_view inside, bool quoted) {
    std::size_t end = 0;
    while (end < inside.size() && is_name_character(inside[end])) ++end;
    if (end == 0 && !inside.empty() && (inside[0] == '@' || inside[0] == '*')) end = 1;
    const std::string_view name = inside.substr(0, end);
    std::string_view rest = inside.substr(end);
    const bool all = rest.starts_with("[@]") || rest.starts_with("[*]");
    if (all) rest.remove_prefix(3);
    if (name.empty()) return add(unset(inside));
    if (rest.empty()) return value(name, quoted, all);
    const bool empty = is_empty(name);
    if (rest.starts_with(":")) rest.remove_prefix(1);
    if (rest.starts_with("-") || rest.starts_with("="))
      return empty ? other(rest.substr(1), quoted) : value(name, quoted, all);
    if (rest.starts_with("+")) return empty ? void() : other(rest.substr(1), quoted);
    if (rest.starts_with("?")) return value(name, quoted, all);
    add(unset(name));
  }

  bool is_empty(std::string_view name) const {
    const auto it = variables_.values_.find(std::string(name));
    if (it == variables_.values_.end()) return true;
    return std::all_of(it->second.begin(), it->second.end(),
                       [](const ShellText& value) { return without_unset(value.text).empty(); });
  }

  void other(std::string_view text, bool quoted) {
    Expander inner(variables_, place_, depth_ + 1, false);
    bool first = true;
    for (const ShellToken& token : lex_shell(text, place_.file)) {
      if (!std::exchange(first, false)) inner.add(" ");
      inner.add(token.separator);
      for (const ShellPiece& piece : token.word.pieces) inner.piece(piece);
    }
    for (const ShellText& word : inner.finish()) split(word.text, quoted, {});
  }

  void value(std::string_view name, bool quoted, bool all) {
    const auto it = variables_.values_.find(std::string(name));
    if (it == variables_.values_.end()) return add(unset(name));
    const std::vector<ShellText>& values = it->second;
    const std::size_t count = all ? values.size() : std::min<std::size_t>(values.size(), 1);
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0 && splits_) end_word();
      if (i > 0 && !splits_) add(" ");
      split(values[i].text, quoted, values[i].place);
      has_word_ = has_word_ || quoted;
    }
  }

  /// A value of a variable: outside quotes its blanks separate words.
  void split(std::string_view text, bool quoted, const Place& place) {
    if (quoted || !splits_) {
      if (!has_word_) word_place_ = place;
      return add(text);
    }
    while (!text.empty()) {
      const std::size_t blank = std::min(text.find_first_of(" \t\r\n"), text.size());
      if (!has_word_) word_place_ = place;
      add(text.substr(0, blank));
      if (blank == text.size()) return;
      end_word();
      text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n", blank), text.size()));
    }
  }

  std::string arithmetic(std::string_view text) {
    Expander inner(variables_, place_, depth_ + 1, false);
    inner.text(text, true);
    std::string expanded;
    for (const ShellText& word : inner.finish()) expanded += word.text;
    const auto result = shell_arithmetic(expanded, [&](std::string_view name) -> std::string {
      const auto it = variables_.values_.find(std::string(name));
      return it == variables_.values_.end() || it->second.empty() ? unset(name) : it->second[0].text;
    });
    return result ? std::to_string(*result) : unset("((...))");
  }

  const ShellVariables& variables_;
  const Place& place_;
  int depth_;
  bool splits_;
  std::vector<ShellText> words_;
  std::string word_;
  Place word_place_;
  bool has_word_ = false;
};

void ShellVariables::set(const std::string& name, std::vector<ShellText> values, bool appends) {
  for (const ShellText& value : values) total_ += value.text.size() + 1;
  if (total_ > 32 * kMostText)
    throw InputError(values.empty() ? Place{} : values[0].place, "the script's variables grow beyond any use",
                     "is it the right file?");
  std::vector<ShellText>& list = values_[name];
  if (!appends) list.clear();
  list.insert(list.end(), values.begin(), values.end());
}

std::vector<ShellText> ShellVariables::expand(const ShellWord& word) const {
  Expander expander(*this, word.place, 0, true);
  for (const ShellPiece& piece : word.pieces) expander.piece(piece);
  return expander.finish();
}

std::string ShellVariables::expand_text(const ShellWord& word) const {
  Expander expander(*this, word.place, 0, false);
  for (const ShellPiece& piece : word.pieces) expander.piece(piece);
  std::string text;
  for (const ShellText& part : expander.finish()) text += part.text;
  return text;
}

}  // namespace ebb
