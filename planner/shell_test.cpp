// or := and (('||' | '-o') and)*; and := not (('&&' | '-a') not)*; not := '!' not | '(' or ')' | -OPERATOR word |
// word OPERATOR word | word
#include "planner/shell_test.hpp"

#include <charconv>
#include <cstdint>

namespace ebb {

namespace {

std::optional<std::int64_t> number(const std::string& word) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return value;
}

std::optional<bool> compare(const std::string& left, std::string_view with, const std::string& right) {
  if (with == "=" || with == "==") return matches_pattern(left, right);
  if (with == "!=") return !matches_pattern(left, right);
  const auto a = number(left);
  const auto b = number(right);
  if (!a || !b) return std::nullopt;
  if (with == "-eq") return *a == *b;
  if (with == "-ne") return *a != *b;
  if (with == "-gt") return *a > *b;
  if (with == "-ge") return *a >= *b;
  if (with == "-lt") return *a < *b;
  if (with == "-le") return *a <= *b;
  return std::nullopt;
}

bool is_comparison(std::string_view word) {
  for (const char* known : {"=", "==", "!=", "-eq", "-ne", "-gt", "-ge", "-lt", "-le", "=~"})
    if (word == known) return true;
  return false;
}

class Test {
 public:
  explicit Test(const std::vector<std::string>& words) : words_(words) {}

  std::optional<bool> answer() {
    if (words_.empty()) return false;
    const std::optional<bool> result = any(0);
    return at_ == words_.size() ? result : std::nullopt;
  }

 private:
  bool take(std::string_view word, std::string_view other) {
    if (at_ >= words_.size() || (words_[at_] != word && words_[at_] != other)) return false;
    ++at_;
    return true;
  }

  std::optional<bool> any(int depth) {
    std::optional<bool> left = all(depth);
    while (take("||", "-o")) {
      const std::optional<bool> right = all(depth);
      if (left == true || right == true)
        left = true;
      else if (!left || !right)
        left = std::nullopt;
    }
    return left;
  }

  std::optional<bool> all(int depth) {
    std::optional<bool> left = one(depth);
    while (take("&&", "-a")) {
      const std::optional<bool> right = one(depth);
      if (left == false || right == false)
        left = false;
      else if (!left || !right)
        left = std::nullopt;
    }
    return left;
  }

  std::optional<bool> one(int depth) {
    if (at_ >= words_.size() || depth > 32) return std::nullopt;
    const std::size_t left = words_.size() - at_;
    if (left >= 3 && is_comparison(words_[at_ + 1])) {
      at_ += 3;
      return compare(words_[at_ - 3], words_[at_ - 2], words_[at_ - 1]);
    }
    if (take("!", "!")) {
      const std::optional<bool> inner = one(depth + 1);
      return inner ? std::optional<bool>(!*inner) : std::nullopt;
    }
    if (take("(", "(")) {
      const std::optional<bool> inner = any(depth + 1);
      return take(")", ")") ? inner : std::nullopt;
    }
    const std::string& word = words_[at_++];
    if (left < 2 || word.size() != 2 || word[0] != '-') return !word.empty();
    return unary(word[1], words_[at_++]);
  }

  static std::optional<bool> unary(char what, const std::string& operand) {
    switch (what) {
      case 'n':
        return !operand.empty();
      case 'z':
        return operand.empty();
      case 'd':
      case 'e':
      case 'f':
      case 's':
      case 'x':
        return false;
      default:
        return std::nullopt;
    }
  }

  const std::vector<std::string>& words_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<bool> shell_test(const std::vector<std::string>& words) { return Test(words).answer(); }

bool matches_pattern(std::string_view text, std::string_view pattern) {
  // Greedy with one point to come back to: the last star. O(|text| * |pattern|).
  std::size_t at = 0, star = std::string_view::npos, resume = 0, i = 0;
  while (i < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      resume = i;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == text[i])) {
      ++at;
      ++i;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      i = ++resume;
    } else {
      return false;
    }
  }
  while (at < pattern.size() && pattern[at] == '*') ++at;
  return at == pattern.size();
}

}  // namespace ebb
