// The script and the style sheet of an HTML report, as built from reports/web/ and embedded in the program.
#pragma once

#include <string_view>

namespace ebb::reports {

std::string_view web_script();
std::string_view web_style();

}  // namespace ebb::reports
