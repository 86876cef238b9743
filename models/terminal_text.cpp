#include "models/terminal_text.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace ebb {

namespace {

/// Bytes of the style that begins `text`; 0: none does.
std::size_t style_at(std::string_view text) {
  for (const std::string_view style : {kBold, kGreen, kDim, kPlain})
    if (text.starts_with(style)) return style.size();
  return 0;
}

}  // namespace

std::string terminal_text(std::string_view text, Styles styles) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (const std::size_t style = styles == Styles::kept && byte == 0x1B ? style_at(text.substr(i)) : 0; style > 0) {
      shown += text.substr(i, style);
      i += style - 1;
    } else if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F) {
      shown += fmt::format("\\u{:04x}", byte);
    } else if (byte == 0xC2 && next >= 0x80 && next < 0xA0) {  // U+0080 to U+009F
      shown += fmt::format("\\u{:04x}", next);
      ++i;
    } else {
      shown += text[i];
    }
  }
  return shown;
}

void write_message(std::string_view program, std::string_view text) {
  fmt::print(stderr, "{}: {}\n", program, terminal_text(text));
}

}  // namespace ebb
