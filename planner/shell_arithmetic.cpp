#include "planner/shell_arithmetic.hpp"

#include <cctype>
#include <cstdlib>

namespace ebb {

namespace {

constexpr std::int64_t kMost = 1'000'000'000'000;
constexpr int kMostDepth = 32;

class Evaluator {
 public:
  Evaluator(std::string_view text, const std::function<std::string(std::string_view)>& value_of)
      : text_(text), value_of_(value_of) {}

  std::optional<std::int64_t> evaluate() {
    const std::int64_t result = sum(0);
    skip();
    if (failed_ || at_ != text_.size()) return std::nullopt;
    return result;
  }

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }

  char next() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  std::int64_t fail() {
    failed_ = true;
    at_ = text_.size();
    return 0;
  }

  std::int64_t checked(double result) {
    return result > static_cast<double>(kMost) || result < -static_cast<double>(kMost)
               ? fail()
               : static_cast<std::int64_t>(result);
  }

  std::int64_t sum(int depth) {
    std::int64_t left = product(depth);
    for (char c = next(); c == '+' || c == '-'; c = next()) {
      ++at_;
      const std::int64_t right = product(depth);
      left = checked(static_cast<double>(left) + (c == '+' ? 1.0 : -1.0) * static_cast<double>(right));
    }
    return left;
  }

  std::int64_t product(int depth) {
    std::int64_t left = value(depth);
    for (char c = next(); c == '*' || c == '/' || c == '%'; c = next()) {
      ++at_;
      const std::int64_t right = value(depth);
      if (c == '*')
        left = checked(static_cast<double>(left) * static_cast<double>(right));
      else if (right == 0)
        left = fail();
      else
        left = c == '/' ? left / right : left % right;
    }
    return left;
  }

  std::int64_t value(int depth) {
    if (depth > kMostDepth) return fail();
    const char c = next();
    if (c == '(') {
      ++at_;
      const std::int64_t inner = sum(depth + 1);
      if (next() != ')') return fail();
      ++at_;
      return inner;
    }
    if (c == '-') {
      ++at_;
      return -value(depth + 1);
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() && (text_[at_] == '_' || std::isalnum(static_cast<unsigned char>(text_[at_])) != 0))
      ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word.empty()) return fail();
    return number(word[0] >= '0' && word[0] <= '9' ? std::string(word) : value_of_(word));
  }

  std::int64_t number(const std::string& word) {
    if (word.empty() || word.size() > 12 || word.find_first_not_of("0123456789") != std::string::npos) return fail();
    return std::strtoll(word.c_str(), nullptr, 10);
  }

  std::string_view text_;
  const std::function<std::string(std::string_view)>& value_of_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace

std::optional<std::int64_t> shell_arithmetic(std::string_view text,
                                             const std::function<std::string(std::string_view)>& value_of) {
  return Evaluator(text, value_of).evaluate();
}

}  // namespace ebb
