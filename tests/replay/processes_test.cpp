// Several processes: what launchers say in the environment, and real processes that meet over TCP.
#include "replay/processes.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "models/errors.hpp"
#include "replay/processes_tcp.hpp"
#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"

using namespace ebb;
using namespace ebb::replay;

namespace {

using Variables = std::map<std::string, std::string>;

ProcessPlace place_of(const Variables& variables) {
  return process_place([&variables](const char* name) -> std::optional<std::string> {
    const auto it = variables.find(name);
    if (it == variables.end()) return std::nullopt;
    return it->second;
  });
}

/// A port that was free a moment ago.
int free_port() {
  const Socket socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  REQUIRE(bind(socket.get(), reinterpret_cast<sockaddr*>(&address), length) == 0);
  REQUIRE(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
  return ntohs(address.sin_port);
}

/// Runs body(rank) in a process of its own for each rank, and returns their exit statuses: 0 when it returned true, 2
/// for an IoError.
template <class Body>
std::vector<int> in_processes(int size, const Body& body) {
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      int status = 1;
      try {
        status = body(rank) ? 0 : 1;
      } catch (const IoError&) {
        status = 2;
      } catch (...) {
        status = 3;
      }
      _exit(status);
    }
    children.push_back(child);
  }
  std::vector<int> statuses;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    statuses.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  }
  return statuses;
}

ProcessPlace local_place(int rank, int size, int port) {
  return {.launcher = Launcher::torchrun,
          .rank = rank,
          .size = size,
          .local_rank = rank,
          .local_size = size,
          .mpi = false,
          .master_address = "127.0.0.1",
          .master_port = port - 1};
}

}  // namespace

TEST_CASE("processes: alone without a launcher, in a Slurm job's own script, and as a launcher's only process") {
  CHECK(place_of({}) == ProcessPlace{});
  CHECK(place_of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "0"}}).size == 1);
  const ProcessPlace one = place_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}});
  CHECK(one.size == 1);
}

TEST_CASE("processes: every launcher's rank, size, local rank and meeting point") {
  const ProcessPlace torchrun = place_of({{"RANK", "9"},
                                          {"WORLD_SIZE", "16"},
                                          {"LOCAL_RANK", "1"},
                                          {"LOCAL_WORLD_SIZE", "8"},
                                          {"MASTER_ADDR", "node1"},
                                          {"MASTER_PORT", "1234"},
                                          {"SLURM_PROCID", "1"},
                                          {"SLURM_STEP_NUM_TASKS", "2"},
                                          {"SLURM_LOCALID", "0"}});  // one torchrun a node, started by srun
  CHECK(torchrun == ProcessPlace{Launcher::torchrun, 9, 16, 1, 8, false, "node1", 1234});
  const ProcessPlace mpirun = place_of({{"OMPI_COMM_WORLD_RANK", "3"},
                                        {"OMPI_COMM_WORLD_SIZE", "4"},
                                        {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}});
  CHECK(mpirun == ProcessPlace{Launcher::open_mpi, 3, 4, 3, 4, true, "127.0.0.1", 29500});
  const ProcessPlace hydra =
      place_of({{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}});
  CHECK(hydra == ProcessPlace{Launcher::pmi, 2, 4, 0, 2, true, "", 29500});
  const ProcessPlace srun = place_of({{"SLURM_PROCID", "5"},
                                      {"SLURM_STEP_NUM_TASKS", "8"},
                                      {"SLURM_LOCALID", "1"},
                                      {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"},
                                      {"MASTER_ADDR", "10.0.0.1"}});
  CHECK(srun == ProcessPlace{Launcher::slurm, 5, 8, 1, 4, false, "10.0.0.1", 29500});
}

TEST_CASE("processes: variables that contradict each other or are no numbers are named") {
  CHECK(error_of([] {
          place_of({{"RANK", "8"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "0"}});
        }).find("RANK is '8'") != std::string::npos);
  CHECK(error_of([] {
          place_of({{"RANK", "x"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "0"}});
        }).find("'x'") != std::string::npos);
  CHECK(error_of([] {
          place_of({{"RANK", "1"}, {"WORLD_SIZE", "8"}});
        }).find("LOCAL_RANK is not") != std::string::npos);
  const ProcessPlace nowhere{.launcher = Launcher::slurm,
                             .rank = 1,
                             .size = 4,
                             .local_rank = 1,
                             .local_size = 2,
                             .mpi = false,
                             .master_address = "",
                             .master_port = 29500};
  CHECK(error_of([&] { Processes{nowhere}; }).find("MASTER_ADDR is not set") != std::string::npos);
}

TEST_CASE("processes: four of them exchange what they have, in any length, again and again") {
  const int port = free_port();
  const auto body = [port](int rank) {
    if (rank == 0) usleep(100'000);  // the others come first
    Processes processes(local_place(rank, 4, port), {20.0});
    const auto message = [](int of, int round) {
      return std::string(static_cast<std::size_t>(of * of * 100'000 + round), static_cast<char>('a' + of));
    };
    for (int round = 0; round < 3; ++round) {
      const auto all = processes.all_gather(message(rank, round));
      if (all.size() != 4) return false;
      for (int of = 0; of < 4; ++of) {
        if (all[static_cast<std::size_t>(of)] != message(of, round)) return false;
      }
      processes.barrier();
      const auto first = processes.gather(std::to_string(rank));
      if (first != (rank == 0 ? std::vector<std::string>{"0", "1", "2", "3"} : std::vector<std::string>{}))
        return false;
    }
    return true;
  };
  CHECK(in_processes(4, body) == std::vector<int>{0, 0, 0, 0});
}

TEST_CASE("processes: nobody leaves a barrier before the last has come to it") {
  const int port = free_port();
  int pipe_ends[2];
  REQUIRE(pipe2(pipe_ends, O_NONBLOCK) == 0);
  const auto body = [&](int rank) {
    Processes processes(local_place(rank, 3, port), {20.0});
    if (rank == 2) {
      usleep(200'000);
      if (write(pipe_ends[1], "x", 1) != 1) return false;
    }
    processes.barrier();
    char c = 0;
    return rank != 1 || read(pipe_ends[0], &c, 1) == 1;  // fails when the byte is not there yet
  };
  CHECK(in_processes(3, body) == std::vector<int>{0, 0, 0});
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST_CASE("processes: who does not come in time, and who goes in the middle, is an error to all others") {
  const int late = free_port();
  CHECK(in_processes(2, [late](int rank) {
          Processes processes(local_place(rank, 3, late), {0.5});  // rank 2 never starts
          return true;
        }) == std::vector<int>{2, 2});
  const int gone = free_port();
  CHECK(in_processes(3, [gone](int rank) {
          Processes processes(local_place(rank, 3, gone), {20.0});
          if (rank == 1) return true;
          processes.barrier();
          return true;
        }) == std::vector<int>{2, 0, 2});
}

TEST_CASE("processes: a stranger at the port is hung up on") {
  const int port = free_port();
  const auto body = [port](int rank) {
    if (rank == 2) {  // the stranger
      usleep(50'000);
      const Socket socket(::socket(AF_INET, SOCK_STREAM, 0));
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<std::uint16_t>(port));
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      if (connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return false;
      const std::string hello = "GET / HTTP/1.1\r\n\r\n";
      if (send(socket.get(), hello.data(), hello.size(), MSG_NOSIGNAL) < 0) return false;
      char c = 0;
      return recv(socket.get(), &c, 1, 0) <= 0;
    }
    if (rank == 1) usleep(300'000);
    Processes processes(local_place(rank, 2, port), {20.0});
    return processes.all_gather("me").size() == 2;
  };
  CHECK(in_processes(3, body) == std::vector<int>{0, 0, 0});
}
