#include "models/errors.hpp"

#include <cstdio>
#include <cstdlib>

namespace ebb {

std::string Place::text() const {
  // A message is one line a problem, whatever a file is called.
  std::string name = file;
  for (std::size_t at = 0; (at = name.find('\n', at)) != std::string::npos; ++at) name.replace(at, 1, "\\n");
  if (file.empty() || line <= 0) return name;
  return name + ":" + std::to_string(line) + ":" + std::to_string(column);
}

namespace {

std::string message(const Place& place, const std::string& problem, const std::string& cure) {
  std::string text = place.text();
  if (!text.empty()) text += ": ";
  text += problem;
  if (!cure.empty()) text += "; " + cure;
  return text;
}

}  // namespace

InputError::InputError(const Place& place, const std::string& problem, const std::string& cure)
    : std::runtime_error(message(place, problem, cure)) {}

void assertion_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, expression);
  std::abort();
}

}  // namespace ebb
