// What each command of `ebb-replay` does. All of them return the exit code and throw as main() says.
#pragma once

#include "replay/cli_options.hpp"

namespace ebb::replay::cli {

int run_run(const RunOptions& options);                  // command_run.cpp
int run_equivalence(const EquivalenceOptions& options);  // command_equivalence.cpp
int run_train(const TrainOptions& options);              // command_train.cpp

}  // namespace ebb::replay::cli
