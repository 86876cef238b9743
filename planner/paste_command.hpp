// A command of Ebb for people to paste: options that were not given are left out, and what a shell would read otherwise
// is quoted. The one writer of such commands: the next step of an answer, and the command that writes a page again.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "models/units.hpp"
#include "planner/cli.hpp"

namespace ebb::cli {

class PasteCommand {
 public:
  /// `ebb COMMAND ARGUMENTS`.
  PasteCommand(const std::string& command, const std::vector<std::string>& arguments) : text_("ebb " + command) {
    for (const std::string& argument : arguments) text_.append(" ").append(quoted(argument));
  }

  template <class Value>
  PasteCommand& add(const char* name, const Value& value) {
    return add_text(name, quoted(fmt::format("{}", value)));
  }
  PasteCommand& add(const char* name, Numel value) { return add(name, value.value); }
  PasteCommand& add(const char* name, Bytes value) { return add(name, value.value); }
  PasteCommand& add(const char* name, bool given) {
    if (given) text_.append(" ").append(name);
    return *this;
  }
  template <class Value>
  PasteCommand& add(const char* name, const std::optional<Value>& value) {
    return value ? add(name, *value) : *this;
  }
  PasteCommand& add(const char* name, const std::vector<std::string>& values) {
    for (const std::string& value : values) add(name, value);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  PasteCommand& add_text(const char* name, const std::string& value) {
    text_.append(" ").append(name).append(" ").append(value);
    return *this;
  }

  std::string text_;
};

}  // namespace ebb::cli
