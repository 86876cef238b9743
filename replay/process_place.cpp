// Sources: torchrun's documentation (environment variables); Open MPI's FAQ and mpirun(1); MPICH's Hydra wiki (PMI_*,
// MPI_LOCALRANKID, MPI_LOCALNRANKS); srun(1), output environment variables.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "models/errors.hpp"
#include "replay/processes.hpp"

namespace ebb::replay {

namespace {

constexpr int kDefaultPort = 29500;  // torchrun's
constexpr int kHighestPort = 65534;  // one more is used

/// A number at the beginning of the variable (Slurm writes "4(x2)"), in [least, most]; unset where the variable is not.
std::optional<int> number(const Environment& environment, const char* name, int least, int most) {
  const auto text = environment(name);
  if (!text) return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  const bool whole = end == text->data() + text->size() || *end == '(' || *end == ',';
  if (error != std::errc{} || !whole || value < least || value > most) {
    throw InputError({}, fmt::format("environment variable {} is '{}'", name, *text),
                     fmt::format("a number from {} to {} is expected here", least, most));
  }
  return value;
}

constexpr int kMostProcesses = 1 << 20;

/// The variables of one launcher; null: it has none for that.
struct Names {
  Launcher launcher;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};
constexpr Names kLaunchers[] = {
    {Launcher::torchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {Launcher::open_mpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {Launcher::pmi, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {Launcher::slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"},
};

std::optional<ProcessPlace> place_by(const Environment& environment, const Names& names) {
  const auto size = number(environment, names.size, 1, kMostProcesses);
  if (!size || !environment(names.rank)) return std::nullopt;
  ProcessPlace place;
  place.launcher = names.launcher;
  place.size = *size;
  place.rank = number(environment, names.rank, 0, *size - 1).value();
  auto local_rank = number(environment, names.local_rank, 0, *size - 1);
  auto local_size = number(environment, names.local_size, 1, *size);
  if (!local_rank) local_rank = number(environment, "SLURM_LOCALID", 0, *size - 1);
  if (!local_rank) {
    throw InputError({}, fmt::format("{} is set and {} is not", names.rank, names.local_rank),
                     "it says which GPU of its host a process takes");
  }
  place.local_rank = *local_rank;
  place.local_size = std::max(local_size.value_or(1), place.local_rank + 1);
  return place;
}

}  // namespace

std::string_view name_of(Launcher launcher) {
  switch (launcher) {
    case Launcher::none:
      return "none";
    case Launcher::open_mpi:
      return "mpirun (Open MPI)";
    case Launcher::pmi:
      return "mpirun (PMI)";
    case Launcher::slurm:
      return "srun";
    case Launcher::torchrun:
      return "torchrun";
  }
  return "";
}

Environment environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* text = std::getenv(name);
    if (text == nullptr) return std::nullopt;
    return text;
  };
}

ProcessPlace process_place(const Environment& environment) {
  ProcessPlace place;
  for (const Names& names : kLaunchers) {
    if (const auto found = place_by(environment, names)) {
      place = *found;
      break;
    }
  }
  if (place.size == 1) return place;
  place.mpi = place.launcher == Launcher::open_mpi || place.launcher == Launcher::pmi ||
              (place.launcher == Launcher::slurm && environment("PMIX_RANK").has_value());
  place.master_address = environment("MASTER_ADDR").value_or(place.size == place.local_size ? "127.0.0.1" : "");
  place.master_port = number(environment, "MASTER_PORT", 1, kHighestPort).value_or(kDefaultPort);
  return place;
}

}  // namespace ebb::replay
