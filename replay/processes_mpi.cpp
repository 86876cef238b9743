#include "replay/processes_mpi.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <exception>
#include <limits>
#include <utility>

#include "models/errors.hpp"

namespace ebb::replay {

namespace {

void checked(int result, const char* call) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw IoError(fmt::format("{}: {}", call, text));
}

/// Counts and offsets are ints.
int as_int(std::size_t value) {
  if (value > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw IoError("processes have more than 2 GiB to tell each other");
  }
  return static_cast<int>(value);
}

}  // namespace

MpiWorld::MpiWorld() : exceptions_(std::uncaught_exceptions()) {
  int provided = 0;
  checked(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  owns_ = true;
  checked(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  checked(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
  checked(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
}

MpiWorld::MpiWorld(MpiWorld&& other) noexcept
    : owns_(std::exchange(other.owns_, false)),
      rank_(other.rank_),
      size_(other.size_),
      exceptions_(other.exceptions_) {}

MpiWorld::~MpiWorld() {
  if (owns_ && std::uncaught_exceptions() <= exceptions_) MPI_Finalize();
}

std::vector<std::string> MpiWorld::exchange(std::string_view mine, bool everywhere) {
  const int bytes = as_int(mine.size());
  std::vector<int> counts(static_cast<std::size_t>(size_));
  checked(MPI_Allgather(&bytes, 1, MPI_INT, counts.data(), 1, MPI_INT, MPI_COMM_WORLD), "MPI_Allgather");
  std::vector<int> offsets(counts.size());
  std::size_t total = 0;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    offsets[r] = as_int(total);
    total += static_cast<std::size_t>(counts[r]);
  }
  const bool receives = everywhere || rank_ == 0;
  std::string together(receives ? static_cast<std::size_t>(as_int(total)) : 0, '\0');
  const auto gather_all = [&] {
    return MPI_Allgatherv(mine.data(), bytes, MPI_CHAR, together.data(), counts.data(), offsets.data(), MPI_CHAR,
                          MPI_COMM_WORLD);
  };
  const auto gather_to_first = [&] {
    return MPI_Gatherv(mine.data(), bytes, MPI_CHAR, together.data(), counts.data(), offsets.data(), MPI_CHAR, 0,
                       MPI_COMM_WORLD);
  };
  checked(everywhere ? gather_all() : gather_to_first(), "MPI_Gatherv");
  std::vector<std::string> all;
  for (std::size_t r = 0; receives && r < counts.size(); ++r) {
    all.push_back(together.substr(static_cast<std::size_t>(offsets[r]), static_cast<std::size_t>(counts[r])));
  }
  return all;
}

}  // namespace ebb::replay
