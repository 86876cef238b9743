// `ebb models|clusters|policies list|show NAME`: what the library holds.
#include "models/errors.hpp"
#include "planner/cli.hpp"

namespace ebb::cli {

int run_library(const LibraryOptions&) { throw InputError(Place{}, "not built yet", "see ebb --help"); }

}  // namespace ebb::cli
