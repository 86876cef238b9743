// `ebb`: the planner's command line. Exit codes: 0 answered, 1 answered in the negative, 2 bad input, 3 the environment
// (files, memory); interrupted it dies of the signal, which shells call 130. Results alone on stdout, everything else
// on stderr.
#include <csignal>
#include <exception>
#include <new>
#include <span>
#include <variant>

#include "models/errors.hpp"
#include "models/terminal_text.hpp"
#include "planner/cli.hpp"
#include "planner/cli_output.hpp"
#include "planner/cli_talk.hpp"

namespace {

struct Runner {
  int operator()(const ebb::cli::PlanOptions& options) const { return ebb::cli::run_plan(options); }
  int operator()(const ebb::cli::SimulateOptions& options) const { return ebb::cli::run_simulate(options); }
  int operator()(const ebb::cli::LayoutOptions& options) const { return ebb::cli::run_layout(options); }
  int operator()(const ebb::cli::ImportOptions& options) const { return ebb::cli::run_import(options); }
  int operator()(const ebb::cli::CheckOptions& options) const { return ebb::cli::run_check(options); }
  int operator()(const ebb::cli::ScoreOptions& options) const { return ebb::cli::run_score(options); }
  int operator()(const ebb::cli::ExplainOptions& options) const { return ebb::cli::run_explain(options); }
  int operator()(const ebb::cli::DiffOptions& options) const { return ebb::cli::run_diff(options); }
  int operator()(const ebb::cli::FitOptions& options) const { return ebb::cli::run_fit(options); }
  int operator()(const ebb::cli::SweepOptions& options) const { return ebb::cli::run_sweep(options); }
  int operator()(const ebb::cli::ReportOptions& options) const { return ebb::cli::run_report(options); }
  int operator()(const ebb::cli::LibraryOptions& options) const { return ebb::cli::run_library(options); }
  int operator()(const ebb::cli::SchemaOptions& options) const { return ebb::cli::run_schema(options); }
  int operator()(const ebb::cli::DoctorOptions& options) const { return ebb::cli::run_doctor(options); }
  int operator()(const ebb::cli::LearnOptions& options) const { return ebb::cli::run_learn(options); }
  int operator()(const ebb::cli::ReplayOptions& options) const { return ebb::cli::run_replay(options); }
  int operator()(const ebb::cli::Print& print) const {
    ebb::cli::write_stdout(print.text);
    return 0;
  }
};

int complain(const char* what, int code) {
  ebb::write_message("ebb", what);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe becomes a failed write (models/text_output.hpp)
  std::signal(SIGXFSZ, SIG_IGN);  // and so does a file that passes the limit on its size
  try {
    const ebb::cli::CommandWords words =
        ebb::cli::parse(std::span<const char* const>(argv, static_cast<std::size_t>(argc)));
    ebb::cli::set_talk(words.everywhere);
    if (words.everywhere.print_config) return ebb::cli::print_config(words.command);
    return std::visit(Runner{}, words.command);
  } catch (const ebb::InputError& error) {
    return complain(error.what(), 2);
  } catch (const std::bad_alloc&) {
    return complain("out of memory", 3);
  } catch (const std::exception& error) {
    return complain(error.what(), 3);
  }
}
