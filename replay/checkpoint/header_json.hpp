// A reader of the JSON that headers of safetensors files are: objects, lists of whole numbers, texts. Whatever bytes
// come, it never goes beyond their end and never recurses. Not here: what the keys mean (safetensors.cpp).
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/errors.hpp"

namespace ebb::replay::checkpoint {

inline void append_utf8(std::string& out, unsigned code) {
  const auto add = [&out](unsigned byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return add(code);
  if (code < 0x800) return add(0xc0 | code >> 6), add(0x80 | (code & 0x3f));
  if (code < 0x10000) {
    add(0xe0 | code >> 12);
  } else {
    add(0xf0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3f));
  }
  add(0x80 | (code >> 6 & 0x3f));
  add(0x80 | (code & 0x3f));
}

/// JSON as far as the format has it: objects, lists of whole numbers, texts. Never beyond the end, never recursive.
class Cursor {
 public:
  Cursor(std::string_view text, std::size_t at, const std::string& file) : text_(text), at_(at), file_(file) {}

  [[noreturn]] void reject(std::string_view problem) const {
    throw InputError({file_}, fmt::format("its safetensors header is wrong at byte {}: {}", at_, problem),
                     "take another checkpoint");
  }
  bool take(char c) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) reject(fmt::format("expected '{}'", c));
  }
  bool at_end() {
    skip_spaces();
    return at_ == text_.size();
  }
  std::int64_t integer() {
    skip_spaces();
    const std::size_t begin = at_;
    std::int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (at_ - begin >= 18) reject("this number is too large");
      value = value * 10 + (text_[at_] - '0');
    }
    if (at_ == begin) reject("expected a whole number");
    if (text_[begin] == '0' && at_ - begin > 1) reject("a number begins with 0");
    return value;
  }
  std::string text() {
    expect('"');
    std::string out;
    for (;;) {
      if (at_ == text_.size()) reject("a text without an end");
      const char c = text_[at_++];
      if (c == '"') return out;
      if (static_cast<unsigned char>(c) < 0x20) reject("a control character in a text");
      if (c == '\\')
        escape(out);
      else
        out += c;
    }
  }
  /// [ whole numbers ]
  std::vector<std::int64_t> integers(std::size_t most) {
    expect('[');
    std::vector<std::int64_t> list;
    if (take(']')) return list;
    do {
      if (list.size() == most) reject("the list is too long");
      list.push_back(integer());
    } while (take(','));
    expect(']');
    return list;
  }
  /// { "key": what `member` reads, ... }
  template <class Member>
  void object(const Member& member) {
    expect('{');
    if (take('}')) return;
    do {
      std::string key = text();
      expect(':');
      member(std::move(key));
    } while (take(','));
    expect('}');
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  unsigned hex4() {
    unsigned code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const std::size_t digit =
          at_ == text_.size() ? std::string_view::npos : std::string_view("0123456789abcdef").find(text_[at_] | 0x20);
      if (digit == std::string_view::npos || text_[at_] < '0') reject("expected four hexadecimal digits");
      code = code << 4 | static_cast<unsigned>(digit);
    }
    return code;
  }
  void escape(std::string& out) {
    constexpr std::string_view kFrom = "\"\\/bfnrt";
    constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
    if (at_ == text_.size()) reject("a text without an end");
    const char c = text_[at_++];
    if (const auto known = kFrom.find(c); known != std::string_view::npos) {
      out += kTo[known];
      return;
    }
    if (c != 'u') reject("an unknown escape");
    unsigned code = hex4();
    if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_, 2) == "\\u") {
      at_ += 2;
      const unsigned low = hex4();
      if (low < 0xdc00 || low >= 0xe000) reject("half a surrogate pair");
      code = 0x10000 + ((code - 0xd800) << 10 | (low - 0xdc00));
    }
    if (code >= 0xd800 && code < 0xe000) reject("half a surrogate pair");
    append_utf8(out, code);
  }

  std::string_view text_;
  std::size_t at_;
  const std::string& file_;
};

}  // namespace ebb::replay::checkpoint
