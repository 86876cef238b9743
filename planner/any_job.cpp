#include "planner/any_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "models/cluster_yaml.hpp"
#include "models/hf_config.hpp"
#include "models/job_yaml.hpp"
#include "models/library.hpp"
#include "models/text_file.hpp"
#include "planner/megatron_file.hpp"

namespace ebb {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kUsualSequence = 4096;

Cluster cluster_of(const ImportChoices& choices) {
  return load_cluster(resolve(Library::clusters, choices.cluster, "", choices.cluster_place));
}

ImportedJob import_arguments(MegatronArguments arguments, const ImportChoices& choices, bool one_host) {
  const Cluster cluster = cluster_of(choices);
  if (choices.gpus) arguments.gpus = choices.gpus;
  const bool assumed = !arguments.gpus && one_host;
  if (assumed) arguments.gpus = cluster.gpus_per_host;
  if (!arguments.gpus)
    throw InputError(Place{arguments.file}, "the number of GPUs is not in the file", choices.gpus_cure);
  ImportedJob imported = job_of(arguments, cluster);
  if (assumed)
    imported.notes.insert(imported.notes.begin(),
                          {ImportNoteKind::assumed, "gpus", fmt::format("one host, {} GPUs", *arguments.gpus)});
  return imported;
}

bool is_yaml(const std::string& file) {
  const std::string extension = fs::path(file).extension().string();
  return extension == ".yaml" || extension == ".yml";
}

bool is_script(const std::string& file, std::string_view text) {
  const std::string extension = fs::path(file).extension().string();
  for (const char* known : {".sh", ".bash", ".slurm", ".sbatch", ".txt", ".args"})
    if (extension == known) return true;
  return text.starts_with("#!") || text.starts_with("--");
}

/// Comments are lines: a name or text from a file may hold anything.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, ' ');
  return text;
}

/// Words behind "#   ", a hundred columns wide.
void add_list(const std::vector<std::string>& words, std::string& text) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty() && line.size() + word.size() > 100) {
      text += "#   " + line + ",\n";
      line.clear();
    }
    line += (line.empty() ? "" : ", ") + word;
  }
  if (!line.empty()) text += "#   " + line + "\n";
}

/// The notes of one kind: those with a text of their own a line each, the others as one list.
void add_notes(const ImportedJob& imported, ImportNoteKind kind, std::string_view title, std::string& text) {
  std::string lines;
  std::vector<std::string> names;
  for (const ImportNote& note : imported.notes) {
    if (note.kind != kind) continue;
    if (kind == ImportNoteKind::ignored)
      names.push_back(one_line(note.argument));
    else
      lines += one_line(fmt::format("#   {}: {}", note.argument, note.text)) + "\n";
  }
  if (lines.empty() && names.empty()) return;
  text += fmt::format("# {}:\n", title) + lines;
  add_list(names, text);
}

}  // namespace

ImportedJob import_megatron(const std::string& file, const ImportChoices& choices) {
  const std::string text = read_text_file(file, kMostYamlBytes);
  if (!is_yaml(file)) return import_arguments(read_megatron_script(text, file), choices, false);
  const YamlNode root = parse_yaml(text, file);
  // Megatron-LM's test cases run on one node.
  return import_arguments(read_megatron_yaml(root, file), choices, root.find("MODEL_ARGS") != nullptr);
}

ImportedJob import_hf(const std::string& file, const ImportChoices& choices) {
  const HfModel hf = load_hf_config(file);
  ImportedJob imported;
  Job& job = imported.job;
  const auto note = [&](ImportNoteKind kind, const char* key, std::string text) {
    imported.notes.push_back({kind, key, std::move(text)});
  };
  job.model = hf.model;
  job.name = hf.model.name;
  job.file = file;
  job.cluster = cluster_of(choices);
  job.parallel.gpus = choices.gpus.value_or(job.cluster.gpus_per_host);
  if (!choices.gpus) note(ImportNoteKind::assumed, "parallel.gpus", fmt::format("one host, {}", job.parallel.gpus));
  if (job.model.moe) job.parallel.expert = std::gcd(job.parallel.gpus, job.model.moe->experts);
  job.parallel.expert_tensor = 1;
  note(ImportNoteKind::assumed, "parallel",
       job.model.moe ? "experts over as many GPUs as divide them, no other model parallelism"
                     : "data parallelism alone");
  job.batch = {.micro = 1,
               .global = job.parallel.gpus,
               .sequence = hf.max_positions > 0 ? std::min(hf.max_positions, kUsualSequence) : kUsualSequence};
  note(ImportNoteKind::assumed, "batch", fmt::format("one sequence of {} a GPU", job.batch.sequence));
  note(ImportNoteKind::assumed, "precision", "bf16 with fp32 gradients and optimizer state");
  for (const std::string& what : hf.not_modelled) note(ImportNoteKind::not_modelled, "model", what);
  return imported;
}

namespace {

/// A job file's tree; nullopt: another form.
std::optional<JobTree> job_tree(const std::string& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return load_job_tree(file);
  if (fs::path(file).extension() == ".json") return std::nullopt;
  const std::string text = read_text_file(file, kMostYamlBytes);
  if (!is_yaml(file) && is_script(file, text)) return std::nullopt;
  JobTree tree{file, parse_yaml(text, file)};
  if (is_megatron_yaml(tree.root)) return std::nullopt;
  return tree;
}

ImportedJob import_any(const std::string& file) {
  ImportChoices choices;
  choices.gpus_cure = fmt::format("write a job first: ebb import megatron {} --gpus N > job.yaml", file);
  return fs::path(file).extension() == ".json" ? import_hf(file, choices) : import_megatron(file, choices);
}

}  // namespace

ImportedJob load_any_job(const std::string& file, std::span<const Setting> settings) {
  ImportedJob imported;
  std::optional<JobTree> tree = job_tree(file);
  if (!tree) {
    imported = import_any(file);
    if (settings.empty()) return imported;
    // What is set is a key of the job file that an import would have written.
    tree = {file, parse_yaml(write_job(imported.job), file)};
  }
  apply_settings(settings, tree->file, tree->root);
  imported.job = read_job(tree->root, tree->file);
  return imported;
}

std::string write_imported(const ImportedJob& imported, const std::string& cluster) {
  const std::vector<std::string> names = library_names(Library::clusters);
  const bool named = std::find(names.begin(), names.end(), cluster) != names.end();
  std::string text = one_line(fmt::format("# Written by ebb import from {}.", imported.job.file)) + "\n";
  add_notes(imported, ImportNoteKind::assumed, "Assumed, because the file does not say it", text);
  add_notes(imported, ImportNoteKind::not_modelled, "Not modelled, although it changes memory or time", text);
  add_notes(imported, ImportNoteKind::ignored, "Ignored, because it changes neither memory nor time of a step", text);
  return text + write_job(imported.job, named ? cluster : "");
}

}  // namespace ebb
