#include "models/errors.hpp"
#include "planner/cli_app.hpp"

namespace ebb::cli {

std::string man_page_of(const CLI::App&, const std::optional<std::string>&) {
  throw InputError(Place{}, "not built yet", "see ebb --help");
}

}  // namespace ebb::cli
