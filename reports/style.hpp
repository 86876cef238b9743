// Whether text for a terminal may use colour, and the few styles there are.
#pragma once

#include <string>

namespace ebb::reports {

struct Style {
  bool colour = false;

  std::string bold(const std::string& text) const { return colour ? "\033[1m" + text + "\033[0m" : text; }
  std::string green(const std::string& text) const { return colour ? "\033[1;32m" + text + "\033[0m" : text; }
  std::string dim(const std::string& text) const { return colour ? "\033[2m" + text + "\033[0m" : text; }
};

/// Colour only on a terminal, and never when NO_COLOR is set to something or TERM is "dumb" or unset.
Style style_of(int file_descriptor);

}  // namespace ebb::reports
