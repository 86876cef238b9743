// MpiWorld: processes that an MPI launcher started exchange bytes over MPI_COMM_WORLD. Compiled where MPI was found.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ebb::replay {

class MpiWorld {
 public:
  /// Initialises MPI. IoError when MPI fails.
  MpiWorld();
  /// Finalises it, but for an error that is under way: the others would be waited for. The launcher ends them.
  ~MpiWorld();
  MpiWorld(MpiWorld&& other) noexcept;
  MpiWorld& operator=(MpiWorld&&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// As TcpStar's.
  std::vector<std::string> exchange(std::string_view mine, bool everywhere);

 private:
  bool owns_ = false;
  int rank_ = 0;
  int size_ = 1;
  int exceptions_ = 0;  // under way at the beginning
};

}  // namespace ebb::replay
