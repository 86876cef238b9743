// Processes: the other processes of this run, when mpirun, srun or torchrun started several: one GPU each, its local
// rank. They exchange small things: NCCL ids before the first collective, times and numbers after the last.
//
// Transport: MPI where this build has it and an MPI launcher started us; otherwise TCP through rank 0 at MASTER_ADDR,
// port MASTER_PORT + 1 (MASTER_PORT itself is torchrun's own). All calls are collective: every process makes the same
// ones in the same order.
// Not here: tensors (nccl.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/units.hpp"

namespace ebb::replay {

enum class Launcher : std::uint8_t { none, open_mpi, pmi, slurm, torchrun };
std::string_view name_of(Launcher launcher);

/// What the environment says. Without a launcher: one process, rank 0. A launcher inside another one counts (torchrun
/// under srun, mpirun in a Slurm job); a Slurm job's own script is no step, so not started several times.
struct ProcessPlace {
  Launcher launcher = Launcher::none;
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  bool mpi = false;            // the launcher can introduce processes that speak MPI
  std::string master_address;  // of rank 0; empty: not given, and not all are on this host
  int master_port = 0;

  bool operator==(const ProcessPlace&) const = default;
};

using Environment = std::function<std::optional<std::string>(const char* name)>;
/// Of this process.
Environment environment();
/// InputError, naming the variable, where they contradict each other or are no numbers.
ProcessPlace process_place(const Environment& environment);

class Processes {
 public:
  /// Meets the others. InputError where the address of rank 0 is missing; IoError when they do not come in time.
  explicit Processes(const ProcessPlace& place, Seconds timeout = {120.0});
  ~Processes();
  Processes(Processes&&) noexcept;
  Processes& operator=(Processes&&) noexcept;

  const ProcessPlace& place() const { return place_; }
  int rank() const { return place_.rank; }
  int size() const { return place_.size; }

  /// What every process gave, by rank, at every process. IoError when one is gone.
  std::vector<std::string> all_gather(std::string_view mine);
  /// ... at rank 0; empty elsewhere.
  std::vector<std::string> gather(std::string_view mine);
  void barrier();

 private:
  struct Transport;  // TCP or MPI
  ProcessPlace place_;
  std::unique_ptr<Transport> transport_;
};

}  // namespace ebb::replay
