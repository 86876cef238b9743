#include "planner/shell_script.hpp"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <optional>
#include <utility>

#include "planner/shell_test.hpp"

namespace ebb {

namespace {

constexpr int kMostDepth = 64;
constexpr std::size_t kMostWords = 200'000;

/// What a command answers, as far as it is known.
enum class Status : std::uint8_t { yes, no, unknown };

/// The word as it is written, "" when anything in it is quoted or expands: keywords and assignments are plain.
std::string_view plain_text(const ShellToken& token) {
  if (token.kind != ShellToken::Kind::word || token.word.pieces.size() != 1 || token.word.pieces[0].quoted) return "";
  return token.word.pieces[0].text;
}

/// The length of NAME in "NAME=...", 0 when the word is no assignment.
std::size_t assigned_name(const ShellWord& word) {
  if (word.pieces.empty() || word.pieces[0].quoted) return 0;
  const std::string& text = word.pieces[0].text;
  std::size_t end = 0;
  while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) ++end;
  const bool digit = !text.empty() && text[0] >= '0' && text[0] <= '9';
  const bool assigns = end < text.size() && (text[end] == '=' || (text[end] == '+' && text.substr(end, 2) == "+="));
  return digit || !assigns ? 0 : end;
}

class Runner {
 public:
  explicit Runner(std::vector<ShellToken> tokens) : tokens_(std::move(tokens)) {}

  ShellScript run() {
    while (at_ < tokens_.size()) {
      statement(true, 0);
    }
    return std::move(script_);
  }

 private:
  bool at_end() const { return at_ >= tokens_.size(); }
  bool is_separator() const { return !at_end() && tokens_[at_].kind == ShellToken::Kind::separator; }
  std::string_view keyword() const { return at_end() ? "" : plain_text(tokens_[at_]); }

  void skip_separators() {
    while (is_separator()) ++at_;
  }

  /// One command with what && and || join to it, or one if or case. Always moves on.
  Status statement(bool active, int depth) {
    if (is_separator()) {
      ++at_;
      return Status::unknown;
    }
    Status status = command(active, depth);
    while (is_separator() && (tokens_[at_].separator == "&&" || tokens_[at_].separator == "||")) {
      const bool is_and = tokens_[at_].separator == "&&";
      ++at_;
      while (is_separator() && tokens_[at_].separator == "\n") ++at_;
      if (at_end()) break;
      const bool runs = is_and ? status != Status::no : status == Status::no;
      const Status right = command(active && runs, depth);
      if (runs) status = right;
    }
    return status;
  }

  Status command(bool active, int depth) {
    if (depth > kMostDepth) throw InputError(tokens_[at_].word.place, "commands are nested too deeply", "");
    const std::string_view word = keyword();
    if (word == "if") return if_command(active, depth);
    if (word == "case") return case_command(active, depth);
    if (word == "for" || word == "select") return for_header(active);
    for (const char* grammar :
         {"then", "else", "elif", "fi", "esac", "do", "done", "while", "until", "{", "}", "function", "!"})
      if (word == grammar) {
        ++at_;
        const Status status = at_end() || is_separator() ? Status::unknown : command(active, depth + 1);
        if (word != "!") return status;
        return status == Status::yes ? Status::no : status == Status::no ? Status::yes : Status::unknown;
      }
    if (word == "[[") return double_bracket(active);
    if (is_separator()) {
      ++at_;
      return Status::unknown;
    }
    return simple(active);
  }

  /// Statements up to one of `ends`, which is left standing.
  void block(std::initializer_list<std::string_view> ends, bool active, int depth, const Place& open) {
    while (true) {
      skip_separators();
      if (at_end()) throw InputError(open, "this has no end", "close it with fi or esac");
      if (std::find(ends.begin(), ends.end(), keyword()) != ends.end()) return;
      statement(active, depth + 1);
    }
  }

  Status if_command(bool active, int depth) {
    const Place open = tokens_[at_].word.place;
    bool done = false;
    while (keyword() == "if" || keyword() == "elif") {
      ++at_;
      const bool holds = condition(active && !done, depth, open);
      ++at_;  // then
      const bool runs = active && !done && holds;
      block({"elif", "else", "fi"}, runs, depth, open);
      done = done || runs;
    }
    if (keyword() == "else") {
      ++at_;
      block({"fi"}, active && !done, depth, open);
    }
    ++at_;  // fi
    return Status::unknown;
  }

  bool condition(bool active, int depth, const Place& open) {
    Status last = Status::unknown;
    while (true) {
      skip_separators();
      if (at_end()) throw InputError(open, "this has no end", "close it with then and fi");
      if (keyword() == "then") return last == Status::yes;
      last = statement(active, depth + 1);
    }
  }

  /// case WORD in PATTERN|PATTERN) ... ;; esac
  Status case_command(bool active, int depth) {
    const Place open = tokens_[at_++].word.place;
    if (at_end() || is_separator()) return Status::unknown;
    const std::string subject = active ? without_unset(variables_.expand_text(tokens_[at_].word)) : "";
    ++at_;
    bool done = false;
    while (true) {
      skip_separators();
      if (at_end()) throw InputError(open, "this has no end", "close it with esac");
      if (keyword() == "in") {
        ++at_;
        continue;
      }
      if (keyword() == "esac") break;
      bool matches = false;
      for (; !at_end() && !(is_separator() && tokens_[at_].separator == ")"); ++at_)
        if (tokens_[at_].kind == ShellToken::Kind::word && active)
          matches = matches || matches_pattern(subject, variables_.expand_text(tokens_[at_].word));
      const bool runs = active && !done && matches;
      while (!at_end() && !(is_separator() && tokens_[at_].separator == ";;") && keyword() != "esac")
        statement(runs, depth + 1);
      done = done || runs;
    }
    ++at_;
    return Status::unknown;
  }

  /// for NAME in WORDS: the body that follows runs once, with the first word.
  Status for_header(bool active) {
    ++at_;
    if (at_end() || is_separator()) return Status::unknown;
    const std::string name(keyword());
    ++at_;
    bool first = true;
    for (; !at_end() && !is_separator() && keyword() != "do"; ++at_) {
      if (keyword() == "in" || !active || !std::exchange(first, false)) continue;
      std::vector<ShellText> words = variables_.expand(tokens_[at_].word);
      if (words.size() > 1) words.resize(1);
      if (!name.empty()) variables_.set(name, words, false);
    }
    return Status::unknown;
  }

  Status double_bracket(bool active) {
    std::vector<std::string> words;
    for (++at_; !at_end() && keyword() != "]]"; ++at_) {
      const ShellToken& token = tokens_[at_];
      if (token.kind == ShellToken::Kind::separator && token.separator == "\n") return Status::unknown;
      if (token.kind == ShellToken::Kind::separator)
        words.push_back(token.separator);
      else if (active)
        words.push_back(without_unset(variables_.expand_text(token.word)));
    }
    if (!at_end()) ++at_;
    return active ? status_of(shell_test(words)) : Status::unknown;
  }

  static Status status_of(std::optional<bool> answer) {
    return !answer ? Status::unknown : *answer ? Status::yes : Status::no;
  }

  Status simple(bool active) {
    bool exports = false;
    bool prefix = true;
    std::vector<std::pair<std::string, std::string>> assigned;
    std::vector<ShellText> words;
    for (; !at_end() && !is_separator(); ++at_) {
      const ShellToken& token = tokens_[at_];
      const std::string_view word = plain_text(token);
      if (prefix && (word == "export" || word == "declare" || word == "local" || word == "readonly" ||
                     word == "typeset" || word == "env" || (exports && word.starts_with("-")))) {
        exports = true;
        continue;
      }
      if (!active) continue;
      if (token.kind == ShellToken::Kind::array)
        assign_array(token);
      else if (prefix && assigned_name(token.word) > 0)
        assigned.push_back(assign(token.word));
      else if (std::vector<ShellText> more = variables_.expand(token.word); !more.empty()) {
        prefix = false;
        words.insert(words.end(), more.begin(), more.end());
      }
    }
    if (!active) return Status::unknown;
    if (exports || !words.empty())
      for (const auto& [name, value] : assigned) script_.environment[name] = value;
    if (exports && !words.empty() && assigned.empty()) export_names(words);
    return keep(std::move(words));
  }

  /// export NAME
  void export_names(const std::vector<ShellText>& words) {
    for (const ShellText& word : words) {
      const std::string value = variables_.expand_text({{{"${" + word.text + "}", false, true}}, word.place});
      if (unset_names(value).empty()) script_.environment[word.text] = value;
    }
  }

  Status keep(std::vector<ShellText> words) {
    if (words.empty()) return Status::yes;
    words_ += words.size();
    if (words_ > kMostWords) throw InputError(words[0].place, "the script has too many words", "is it the right file?");
    const std::string name = words[0].text;
    Status status = Status::unknown;
    if (name == "true" || name == ":") status = Status::yes;
    if (name == "false") status = Status::no;
    if ((name == "[" && words.back().text == "]") || name == "test") {
      std::vector<std::string> test;
      for (std::size_t i = 1; i < words.size() - (name == "[" ? 1 : 0); ++i)
        test.push_back(without_unset(words[i].text));
      status = status_of(shell_test(test));
    }
    script_.commands.push_back(std::move(words));
    return status;
  }

  void assign_array(const ShellToken& token) {
    std::vector<ShellText> values;
    for (const ShellWord& item : token.items)
      for (ShellText& value : variables_.expand(item)) values.push_back(std::move(value));
    words_ += values.size();
    if (words_ > kMostWords)
      throw InputError(token.word.place, "the script has too many words", "is it the right file?");
    variables_.set(token.word.pieces[0].text, std::move(values), token.appends);
  }

  std::pair<std::string, std::string> assign(ShellWord word) {
    const std::size_t end = assigned_name(word);
    std::string& text = word.pieces[0].text;
    const std::string name = text.substr(0, end);
    const bool appends = text[end] == '+';
    text.erase(0, end + (appends ? 2 : 1));
    std::string value = variables_.expand_text(word);
    if (appends) value = variables_.expand_text({{{"${" + name + ":-}", false, true}}, word.place}) + value;
    variables_.set(name, {{value, word.place}}, false);
    return {name, shown(value)};
  }

  std::vector<ShellToken> tokens_;
  std::size_t at_ = 0;
  ShellVariables variables_;
  ShellScript script_;
  std::size_t words_ = 0;
};

}  // namespace

ShellScript run_shell(std::string_view text, const std::string& file) { return Runner(lex_shell(text, file)).run(); }

}  // namespace ebb
