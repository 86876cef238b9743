// `ebb check`. Not written yet.
#include "models/errors.hpp"
#include "planner/cli.hpp"

namespace ebb::cli {

int run_check(const CheckOptions& /*options*/) { throw InputError(Place{}, "check is not written yet", ""); }

}  // namespace ebb::cli
