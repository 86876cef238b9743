#include "reports/style.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace ebb::reports {

Style style_of(int file_descriptor) {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool refused = no_colour != nullptr && *no_colour != '\0';
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  const bool read = ::isatty(file_descriptor) == 1;
  return {.colour = !refused && !dumb && read, .terminal = read};
}

}  // namespace ebb::reports
