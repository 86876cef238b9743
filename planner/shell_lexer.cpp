#include "planner/shell_lexer.hpp"

#include <algorithm>

#include "models/text_file.hpp"

namespace ebb {

namespace {

bool is_name(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

class Lexer {
 public:
  Lexer(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  std::vector<ShellToken> lex() {
    while (at_ < text_.size()) step();
    return std::move(tokens_);
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  Place here() const { return {file_, line_, static_cast<int>(at_ - line_start_) + 1}; }

  void advance() {
    if (text_[at_++] != '\n') return;
    ++line_;
    line_start_ = at_;
  }

  /// Blanks, and lines that a backslash continues.
  bool skip_blank() {
    const char c = peek();
    if (c == ' ' || c == '\t' || c == '\r') {
      advance();
      return true;
    }
    if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
      while (peek() != '\n') advance();
      advance();
      return true;
    }
    return false;
  }

  void skip_comment() {
    while (at_ < text_.size() && peek() != '\n') advance();
  }

  void step() {
    if (skip_blank()) return;
    if (peek() == '#') return skip_comment();
    if (peek() == '<' || peek() == '>') return redirection();
    if (std::string_view("\n;&|()").find(peek()) != std::string_view::npos) return separator();
    word_or_array();
  }

  void separator() {
    ShellToken token;
    token.kind = ShellToken::Kind::separator;
    token.word.place = here();
    token.separator = std::string(1, peek());
    advance();
    if ((token.separator == "&" || token.separator == "|" || token.separator == ";") && peek() == token.separator[0]) {
      token.separator += peek();
      advance();
    }
    const bool line_ends = token.separator == "\n";
    tokens_.push_back(std::move(token));
    if (line_ends) skip_here_documents();
  }

  /// The operator and the file behind it; a here-document's lines are left out from the next line on.
  void redirection() {
    const char first = peek();
    advance();
    const bool document = first == '<' && peek() == '<' && peek(1) != '<';
    while (peek() == '<' || peek() == '>' || peek() == '&' || peek() == '|' || (document && peek() == '-')) advance();
    while (skip_blank()) {
    }
    if (at_ >= text_.size() || peek() == '\n' || peek() == '(') return;
    const ShellWord target = word();
    if (!document) return;
    std::string end;
    for (const ShellPiece& piece : target.pieces) end += piece.text;
    documents_.push_back(end);
  }

  void skip_here_documents() {
    for (const std::string& end : documents_)
      while (at_ < text_.size()) {
        const std::size_t begin = at_;
        skip_comment();
        std::string_view line = text_.substr(begin, at_ - begin);
        if (at_ < text_.size()) advance();
        line.remove_prefix(std::min(line.find_first_not_of("\t "), line.size()));
        if (line == end) break;
      }
    documents_.clear();
  }

  void word_or_array() {
    ShellToken token;
    token.word = word();
    std::string_view name;
    if (token.word.pieces.size() == 1 && !token.word.pieces[0].quoted) name = token.word.pieces[0].text;
    const bool appends = name.ends_with("+=");
    if (peek() == '(' && name.ends_with('=') && is_name(name.substr(0, name.size() - (appends ? 2 : 1)))) {
      token.kind = ShellToken::Kind::array;
      token.appends = appends;
      token.word.pieces[0].text.resize(name.size() - (appends ? 2 : 1));
      array(token);
    }
    // "2>&1": the number in front of a redirection belongs to it.
    const bool descriptor = (peek() == '<' || peek() == '>') && !name.empty() &&
                            name.find_first_not_of("0123456789") == std::string_view::npos;
    if (token.kind == ShellToken::Kind::array || (!token.word.pieces.empty() && !descriptor))
      tokens_.push_back(std::move(token));
  }

  void array(ShellToken& token) {
    const Place open = here();
    advance();
    while (peek() != ')') {
      if (at_ >= text_.size()) throw InputError(open, "this bracket is never closed", "close it");
      if (skip_blank()) continue;
      if (peek() == '#')
        skip_comment();
      else if (std::string_view("\n;&|(<>").find(peek()) != std::string_view::npos)
        advance();
      else
        token.items.push_back(word());
    }
    advance();
  }

  ShellWord word() {
    ShellWord word;
    word.place = here();
    while (at_ < text_.size() && std::string_view(" \t\r\n;&|()<>").find(peek()) == std::string_view::npos) {
      if (peek() == '\'')
        single_quoted(word);
      else if (peek() == '"')
        double_quoted(word);
      else if (peek() == '\\')
        escaped(word);
      else if (peek() == '$' || peek() == '`')
        append(word, expansion(), false);
      else
        plain(word);
    }
    return word;
  }

  void plain(ShellWord& word) {
    append(word, std::string(1, peek()), false);
    advance();
  }

  void escaped(ShellWord& word) {
    if (skip_blank()) return;
    advance();
    if (at_ >= text_.size()) return;
    word.pieces.push_back({std::string(1, peek()), true, true});
    advance();
  }

  void single_quoted(ShellWord& word) {
    const Place open = here();
    advance();
    ShellPiece piece{{}, true, true};
    for (; peek() != '\''; advance()) {
      if (at_ >= text_.size()) throw InputError(open, "this quote is never closed", "close it");
      piece.text += peek();
    }
    advance();
    word.pieces.push_back(std::move(piece));
  }

  void double_quoted(ShellWord& word) {
    const Place open = here();
    advance();
    word.pieces.push_back({{}, false, true});
    while (peek() != '"') {
      if (at_ >= text_.size()) throw InputError(open, "this quote is never closed", "close it");
      if (peek() == '\\' && peek(1) == '\n') {
        advance();
        advance();
      } else if (peek() == '\\' && std::string_view("\"\\$`").find(peek(1)) != std::string_view::npos && peek(1) != 0) {
        advance();
        word.pieces.push_back({std::string(1, peek()), true, true});
        word.pieces.push_back({{}, false, true});
        advance();
      } else if (peek() == '$' || peek() == '`') {
        word.pieces.back().text += expansion();
      } else {
        word.pieces.back().text += peek();
        advance();
      }
    }
    advance();
  }

  static void append(ShellWord& word, const std::string& text, bool quoted) {
    if (word.pieces.empty() || word.pieces.back().literal || word.pieces.back().quoted != quoted)
      word.pieces.push_back({{}, false, quoted});
    word.pieces.back().text += text;
  }

  /// "$NAME", "${...}", "$(...)" or "`...`", whole: brackets inside it count.
  std::string expansion() {
    const Place open = here();
    std::string text(1, peek());
    const bool backtick = peek() == '`';
    advance();
    if (!backtick && peek() != '{' && peek() != '(') return text;
    int depth = 0;
    do {
      if (at_ >= text_.size()) throw InputError(open, "this expansion is never closed", "close it");
      const char c = peek();
      if (c == '{' || c == '(') ++depth;
      if (c == '}' || c == ')') --depth;
      if (backtick && c == '`') depth = -1;
      text += c;
      advance();
    } while (depth > 0 || (backtick && depth == 0));
    return text;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::size_t line_start_ = 0;
  std::vector<ShellToken> tokens_;
  std::vector<std::string> documents_;  // here-documents whose lines follow
};

}  // namespace

std::vector<ShellToken> lex_shell(std::string_view text, const std::string& file) { return Lexer(text, file).lex(); }

}  // namespace ebb
