// job_of: the parts in their order, and a note on every argument that none of them used.
#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "planner/megatron_arguments.hpp"
#include "planner/megatron_known.hpp"
#include "planner/megatron_parts.hpp"

namespace ebb {

namespace {

/// Comparing a name with all known ones takes a while; a file full of unknown names is not a file of arguments.
constexpr int kMostSuggestions = 20;

/// Whether the argument is there with a value that does not switch it off.
bool is_on(const MegatronArgument* argument) {
  if (argument == nullptr) return false;
  if (argument->values.size() != 1) return true;
  const std::string& value = argument->values[0];
  return value != "false" && value != "False" && value != "0" && value != "0.0";
}

void note_unknown(const MegatronImport& in, const std::string& name, int& suggestions) {
  const std::string nearest = suggestions-- > 0 ? nearest_argument(name) : "";
  in.note(ImportNoteKind::not_modelled, name.substr(0, 80),
          nearest.empty() ? "not an argument that Ebb knows" : fmt::format("not known; did you mean --{}?", nearest));
}

/// One note an argument, in the order of the file.
void note_arguments(const MegatronImport& in, const MegatronArguments& arguments) {
  std::set<std::string> seen;
  int suggestions = kMostSuggestions;
  for (const MegatronArgument& argument : arguments.arguments) {
    if (!seen.insert(argument.name).second) continue;
    const std::optional<KnownArgument> known = known_argument(argument.name);
    if (!known)
      note_unknown(in, argument.name, suggestions);
    else if (known->use == ArgumentUse::ignored)
      in.note(ImportNoteKind::ignored, argument.name, "changes neither memory nor time of a step");
    else if (known->use == ArgumentUse::not_modelled && is_on(in.values.find(argument.name)))
      in.note(ImportNoteKind::not_modelled, argument.name, std::string(known->about));
  }
}

/// Where each key of the job was decided: checks of the job name the argument's place.
void set_places(const MegatronArguments& arguments, Job& job) {
  for (const MegatronArgument& argument : arguments.arguments) {
    const std::optional<KnownArgument> known = known_argument(argument.name);
    if (known && known->use == ArgumentUse::used && !known->about.empty())
      job.places[std::string(known->about)] = argument.place;
  }
}

}  // namespace

ImportedJob job_of(const MegatronArguments& arguments, const Cluster& cluster) {
  const MegatronValues values(arguments);
  ImportedJob result;
  const MegatronImport in{values, result};
  Job& job = result.job;
  job.file = arguments.file;
  job.name = std::filesystem::path(arguments.file).stem().string();
  job.cluster = cluster;
  if (!arguments.gpus) throw InputError(Place{arguments.file}, "the number of GPUs is not in the file", "give --gpus");
  job.parallel.gpus = *arguments.gpus;
  set_places(arguments, job);
  import_model(in);
  import_parallel(in);
  import_batch(in);
  import_precision(in);
  import_recompute(in);
  import_offload(in);
  import_settings(in);
  import_bucket_count(in);
  note_arguments(in, arguments);
  return result;
}

}  // namespace ebb
