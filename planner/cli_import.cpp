// `ebb import megatron FILE`, `ebb import hf config.json`: a job file on stdout, with what it leaves out as comments.
#include <fmt/format.h>

#include "models/quantity_text.hpp"
#include "planner/any_job.hpp"
#include "planner/cli.hpp"
#include "planner/cli_output.hpp"

namespace ebb::cli {

namespace {

ImportChoices choices_of(const ImportOptions& options) {
  ImportChoices choices;
  choices.cluster_place = Place{"--cluster"};
  if (options.cluster) choices.cluster = *options.cluster;
  if (!options.gpus) return choices;
  choices.gpus = parse_gpus(*options.gpus);
  return choices;
}

}  // namespace

std::int64_t parse_gpus(const std::string& text) {
  const std::int64_t gpus = parse_count(text, Place{"--gpus"});
  if (gpus < 1 || gpus > 1'000'000)
    throw InputError(Place{"--gpus"}, fmt::format("{} is out of range", gpus), "use 1 to 1000000");
  return gpus;
}

int run_import(const ImportOptions& options) {
  const ImportChoices choices = choices_of(options);
  if (options.kind != "megatron" && options.kind != "hf")
    throw InputError(Place{"KIND"}, fmt::format("unknown kind \"{}\"", options.kind.substr(0, 40)),
                     "use megatron (scripts, argument lists, YAML) or hf (config.json)");
  const ImportedJob imported =
      options.kind == "hf" ? import_hf(options.file, choices) : import_megatron(options.file, choices);
  write_stdout(write_imported(imported, choices.cluster));
  return 0;
}

Job load_job_argument(const std::string& file, const Settings& settings) {
  if (!settings.empty()) throw InputError({"--set"}, "not built yet", "see ebb --help");
  ImportedJob loaded = load_any_job(file);
  for (const ImportNote& note : loaded.notes)
    if (note.kind != ImportNoteKind::ignored)
      fmt::print(stderr, "ebb: {}: {}: {}\n", note.kind == ImportNoteKind::assumed ? "assumed" : "not modelled",
                 note.argument, note.text);
  return std::move(loaded.job);
}

}  // namespace ebb::cli
