// Megatron-LM's arguments, in whichever form they were written, and the job they describe. Reading the forms (launch
// scripts, argument lists, test-case and recipe YAML) is megatron_file.hpp's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/errors.hpp"
#include "models/job.hpp"

namespace ebb {

/// `--name value ...`; a flag alone has no values.
struct MegatronArgument {
  std::string name;  // without dashes in front, words joined by '-': "num-layers"
  std::vector<std::string> values;
  Place place;
  std::vector<std::string> unset{};  // variables in the values that the file does not set; they stand there as $NAME
};

struct MegatronArguments {
  std::string file;
  std::vector<MegatronArgument> arguments;         // a later one replaces an earlier one
  std::optional<std::int64_t> gpus;                // from --nproc-per-node and --nnodes, or --gpus
  std::map<std::string, std::string> environment;  // where the file sets it
};

enum class ImportNoteKind : std::uint8_t {
  ignored,       // an argument that changes no answer of Ebb
  assumed,       // not in the file, and no default of Megatron's: Ebb chose
  not_modelled,  // changes answers, and Ebb does not know how
};
struct ImportNote {
  ImportNoteKind kind = ImportNoteKind::ignored;
  std::string argument;
  std::string text;
};

struct ImportedJob {
  Job job;
  std::vector<ImportNote> notes;
};

/// Megatron-LM main's defaults where the arguments are silent. InputError for a value that Megatron would not take and
/// for sizes that are missing; an argument that is not known is a note.
ImportedJob job_of(const MegatronArguments& arguments, const Cluster& cluster);

}  // namespace ebb
