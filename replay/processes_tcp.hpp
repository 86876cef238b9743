// TcpStar: processes that exchange bytes through rank 0, over one TCP connection each.
//
// Rank 0 listens, the others come and say who they are. An exchange: everybody sends what it has to rank 0, which sends
// all of it back to everybody, or only a sign that all have come. A message is its length, 8 bytes little-endian, and
// its bytes. A process that ends closes its connection, which the others notice: nobody waits for the dead.
// Not here: secrets. Whoever reaches the port while the run begins can take part in it, as with torchrun.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/units.hpp"

namespace ebb::replay {

/// A socket that closes itself.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket();
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  int get() const { return descriptor_; }
  bool valid() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

struct TcpStarOptions {
  int rank = 0;
  int size = 1;
  std::string address;  // of rank 0: name or number
  int port = 0;
  Seconds timeout{120.0};  // for all to come
};

class TcpStar {
 public:
  /// IoError when not all come in time, the port is taken, or the address has no host.
  explicit TcpStar(const TcpStarOptions& options);

  /// By rank; elsewhere than at rank 0 empty unless `everywhere`. IoError when one is gone.
  std::vector<std::string> exchange(std::string_view mine, bool everywhere);

 private:
  void wait_for_others(const TcpStarOptions& options);
  void join(const TcpStarOptions& options);

  int rank_;
  int size_;
  std::vector<Socket> peers_;  // rank 0: by rank, its own unused; others: rank 0's alone
};

}  // namespace ebb::replay
