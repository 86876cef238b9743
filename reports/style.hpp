// Whether text for a terminal may use colour, and the few styles there are.
#pragma once

#include <string>
#include <string_view>

#include "models/terminal_text.hpp"

namespace ebb::reports {

struct Style {
  bool colour = false;
  bool terminal = false;  // people read it; otherwise programs may, one line a row

  std::string bold(const std::string& text) const { return styled(kBold, text); }
  std::string green(const std::string& text) const { return styled(kGreen, text); }
  std::string dim(const std::string& text) const { return styled(kDim, text); }

 private:
  std::string styled(std::string_view style, const std::string& text) const {
    return colour ? std::string(style) + text + std::string(kPlain) : text;
  }
};

/// Colour only on a terminal, and never when NO_COLOR is set to something or TERM is "dumb" or unset.
Style style_of(int file_descriptor);

}  // namespace ebb::reports
