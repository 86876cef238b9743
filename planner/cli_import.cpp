// `ebb import`. Not written yet.
#include "models/errors.hpp"
#include "planner/cli.hpp"

namespace ebb::cli {

int run_import(const ImportOptions& /*options*/) { throw InputError(Place{}, "import is not written yet", ""); }

}  // namespace ebb::cli
