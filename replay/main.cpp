// `ebb-replay`: plans on real GPUs. Exit codes: 0 done, 1 not equivalent, 2 bad input, 3 the environment (CUDA, NCCL,
// files, memory), 128 + N interrupted by signal N. Results alone on stdout, everything else on stderr.
#include <csignal>
#include <exception>
#include <new>
#include <span>
#include <variant>

#include "models/errors.hpp"
#include "models/terminal_text.hpp"
#include "models/text_output.hpp"
#include "replay/commands.hpp"
#include "replay/interrupt.hpp"

namespace {

struct Runner {
  int operator()(const ebb::replay::cli::RunOptions& options) const { return ebb::replay::cli::run_run(options); }
  int operator()(const ebb::replay::cli::EquivalenceOptions& options) const {
    return ebb::replay::cli::run_equivalence(options);
  }
  int operator()(const ebb::replay::cli::TrainOptions& options) const { return ebb::replay::cli::run_train(options); }
  int operator()(const ebb::replay::CalibrateOptions& options) const { return ebb::replay::run_calibrate(options); }
  int operator()(const ebb::replay::CheckpointOptions& options) const { return ebb::replay::run_checkpoint(options); }
  int operator()(const ebb::replay::cli::Print& print) const {
    ebb::write_stdout(print.text);
    return 0;
  }
};

int complain(const char* what, int code) {
  ebb::write_message("ebb-replay", what);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe becomes a failed write (models/text_output.hpp)
  ebb::replay::watch_interrupts();
  try {
    const std::span<const char* const> arguments(argv, static_cast<std::size_t>(argc));
    const ebb::replay::cli::CommandWords words = ebb::replay::cli::parse(arguments);
    ebb::replay::set_talk(words.talk);
    return std::visit(Runner{}, words.command);
  } catch (const ebb::InputError& error) {
    return complain(error.what(), 2);
  } catch (const std::bad_alloc&) {
    return complain("out of memory", 3);
  } catch (const std::exception& error) {
    return complain(error.what(), 3);
  }
}
