#include "reports/web_bundle.hpp"

#include <cstddef>

// Defined in web_bundle.S, which embeds the files that the build names.
extern "C" {
extern const char ebb_web_script_begin[];
extern const char ebb_web_script_end[];
extern const char ebb_web_style_begin[];
extern const char ebb_web_style_end[];
}

namespace ebb::reports {

std::string_view web_script() {
  return {ebb_web_script_begin, static_cast<std::size_t>(ebb_web_script_end - ebb_web_script_begin)};
}

std::string_view web_style() {
  return {ebb_web_style_begin, static_cast<std::size_t>(ebb_web_style_end - ebb_web_style_begin)};
}

}  // namespace ebb::reports
