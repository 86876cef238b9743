// `ebb report FILES -o page.html`: documents and timelines of earlier runs as one page.
#include "models/errors.hpp"
#include "planner/cli.hpp"

namespace ebb::cli {

int run_report(const ReportOptions&) { throw InputError(Place{}, "not built yet", "see ebb --help"); }

}  // namespace ebb::cli
