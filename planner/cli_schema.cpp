// `ebb schema NAME`: the JSON Schema of a file that Ebb reads or writes.
#include "models/errors.hpp"
#include "planner/cli.hpp"

namespace ebb::cli {

int run_schema(const SchemaOptions&) { throw InputError(Place{}, "not built yet", "see ebb --help"); }

}  // namespace ebb::cli
