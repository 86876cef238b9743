// sum := product ('+' product)*; product := value ('*' value)*; value := number | '[' sum (',' sum)* ']' | '(' sum ')'
#include "planner/python_list.hpp"

#include <fmt/format.h>

#include <string>

namespace ebb {

namespace {

constexpr int kMostDepth = 32;
constexpr std::int64_t kMostNumber = 1'000'000;

struct Value {
  bool is_list = false;
  std::int64_t number = 0;
  std::vector<std::int64_t> list{};
};

class ListParser {
 public:
  ListParser(std::string_view text, std::size_t most, const Place& place) : text_(text), most_(most), place_(place) {}

  std::vector<std::int64_t> parse() {
    Value value = sum(0);
    if (at_ != text_.size() || !value.is_list) reject();
    return value.list;
  }

 private:
  [[noreturn]] void reject() const {
    throw InputError(place_, fmt::format("\"{}\" is not a list of numbers", text_.substr(0, 60)),
                     "write a list such as \"([0]*3+[1]*58)\"");
  }

  char next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool take(char c) {
    if (next() != c) return false;
    ++at_;
    next();  // blanks behind it, so that the end is the end
    return true;
  }

  Value sum(int depth) {
    Value left = product(depth);
    while (take('+')) left = add(left, product(depth));
    return left;
  }

  Value product(int depth) {
    Value left = value(depth);
    while (take('*')) left = multiply(left, value(depth));
    return left;
  }

  Value value(int depth) {
    if (depth >= kMostDepth) reject();
    if (take('(')) {
      Value inner = sum(depth + 1);
      if (!take(')')) reject();
      return inner;
    }
    if (take('[')) return list(depth);
    return number();
  }

  Value list(int depth) {
    Value result{.is_list = true};
    if (take(']')) return result;
    do {
      const Value item = sum(depth + 1);
      if (item.is_list) reject();
      result.list.push_back(item.number);
      check_length(result.list.size());
    } while (take(',') && next() != ']');
    if (!take(']')) reject();
    return result;
  }

  Value number() {
    Value result;
    const char first = next();
    if (first < '0' || first > '9') reject();
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      result.number = checked(result.number * 10 + (text_[at_] - '0'));
    next();
    return result;
  }

  Value add(Value left, const Value& right) {
    if (left.is_list != right.is_list) reject();
    left.number = checked(left.number + right.number);
    check_length(left.list.size() + right.list.size());
    left.list.insert(left.list.end(), right.list.begin(), right.list.end());
    return left;
  }

  Value multiply(const Value& left, const Value& right) {
    if (left.is_list && right.is_list) reject();
    if (!left.is_list && !right.is_list) return {.number = checked(left.number * right.number)};
    const Value& list = left.is_list ? left : right;
    const std::int64_t times = left.is_list ? right.number : left.number;
    Value result{.is_list = true};
    if (list.list.empty()) return result;
    check_length(list.list.size() * static_cast<std::size_t>(times));
    for (std::int64_t i = 0; i < times; ++i) result.list.insert(result.list.end(), list.list.begin(), list.list.end());
    return result;
  }

  std::int64_t checked(std::int64_t number) const {
    if (number > kMostNumber) reject();
    return number;
  }

  void check_length(std::size_t length) const {
    if (length > most_)
      throw InputError(place_, fmt::format("\"{}\" has more than {} numbers", text_.substr(0, 60), most_), "");
  }

  std::string_view text_;
  std::size_t most_;
  const Place& place_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<std::int64_t> parse_python_list(std::string_view text, std::size_t most, const Place& place) {
  return ListParser(text, most, place).parse();
}

}  // namespace ebb
