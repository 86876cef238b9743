#include "replay/processes.hpp"

#include <fmt/format.h>

#include <variant>

#include "models/errors.hpp"
#include "replay/processes_tcp.hpp"
#ifdef EBB_HAVE_MPI
#include "replay/processes_mpi.hpp"
#endif

namespace ebb::replay {

namespace {

/// One process.
struct Alone {
  std::vector<std::string> exchange(std::string_view mine, bool) { return {std::string(mine)}; }
};

TcpStar tcp_star(const ProcessPlace& place, Seconds timeout) {
  if (place.master_address.empty()) {
    throw InputError({},
                     fmt::format("{} started {} processes on several hosts, and MASTER_ADDR is not set",
                                 name_of(place.launcher), place.size),
                     "set MASTER_ADDR to the host of rank 0, or build with MPI");
  }
  return TcpStar({.rank = place.rank,
                  .size = place.size,
                  .address = place.master_address,
                  .port = place.master_port + 1,
                  .timeout = timeout});
}

}  // namespace

struct Processes::Transport {
#ifdef EBB_HAVE_MPI
  std::variant<Alone, TcpStar, MpiWorld> way;
#else
  std::variant<Alone, TcpStar> way;
#endif
};

Processes::Processes(const ProcessPlace& place, Seconds timeout)
    : place_(place), transport_(std::make_unique<Transport>()) {
  if (place.size == 1) return;
#ifdef EBB_HAVE_MPI
  if (place.mpi) {
    MpiWorld world;
    if (world.size() != place.size || world.rank() != place.rank) {
      throw InputError({},
                       fmt::format("{} says rank {} of {}, MPI says rank {} of {}", name_of(place.launcher), place.rank,
                                   place.size, world.rank(), world.size()),
                       "start with the mpirun of the MPI that this was built with");
    }
    transport_->way.emplace<MpiWorld>(std::move(world));
    return;
  }
#endif
  transport_->way.emplace<TcpStar>(tcp_star(place, timeout));
}

Processes::~Processes() = default;
Processes::Processes(Processes&&) noexcept = default;
Processes& Processes::operator=(Processes&&) noexcept = default;

std::vector<std::string> Processes::all_gather(std::string_view mine) {
  return std::visit([&](auto& way) { return way.exchange(mine, true); }, transport_->way);
}

std::vector<std::string> Processes::gather(std::string_view mine) {
  return std::visit([&](auto& way) { return way.exchange(mine, false); }, transport_->way);
}

void Processes::barrier() { gather(""); }

}  // namespace ebb::replay
