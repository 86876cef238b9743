#include "replay/processes_tcp.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>

#include "models/errors.hpp"

namespace ebb::replay {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kLongestMessage = std::uint64_t{1} << 32;
constexpr auto kTryAgain = std::chrono::milliseconds(50);
constexpr std::uint32_t kGreeting = 0x45626231;  // "Ebb1"

/// What a process says when it comes.
struct Hello {
  std::uint32_t greeting = kGreeting;
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
};

std::string reason() { return std::strerror(errno); }

/// All bytes, or false when the other side is gone.
bool send_all(const Socket& socket, const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(socket.get(), at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(const Socket& socket, void* data, std::size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = recv(socket.get(), at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

void send_message(const Socket& socket, int to, std::string_view message) {
  std::array<unsigned char, 8> length{};
  for (std::size_t i = 0; i < length.size(); ++i) {
    length[i] = static_cast<unsigned char>(static_cast<std::uint64_t>(message.size()) >> (8 * i));
  }
  if (send_all(socket, length.data(), length.size()) && send_all(socket, message.data(), message.size())) return;
  throw IoError(fmt::format("process {} is gone: its connection is closed; see what it said", to));
}

std::string receive_message(const Socket& socket, int from) {
  std::array<unsigned char, 8> length{};
  bool ok = receive_all(socket, length.data(), length.size());
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < length.size(); ++i) bytes |= static_cast<std::uint64_t>(length[i]) << (8 * i);
  std::string message;
  if (ok && bytes <= kLongestMessage) {
    message.resize(bytes);
    ok = receive_all(socket, message.data(), message.size());
  }
  if (ok && bytes <= kLongestMessage) return message;
  throw IoError(fmt::format("process {} is gone: its connection is closed; see what it said", from));
}

void set_option(const Socket& socket, int level, int name, int value) {
  setsockopt(socket.get(), level, name, &value, sizeof(value));  // a wish
}

/// A limit on how long one recv may take; 0: none.
void set_receive_timeout(const Socket& socket, Seconds timeout) {
  timeval time{};
  time.tv_sec = static_cast<time_t>(timeout.value);
  time.tv_usec = static_cast<suseconds_t>((timeout.value - static_cast<double>(time.tv_sec)) * 1e6);
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
}

/// Over both versions of IP where the machine has both.
Socket listen_on(int port, int backlog) {
  for (const int family : {AF_INET6, AF_INET}) {
    Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket.valid()) continue;
    set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
    sockaddr_storage address{};
    socklen_t length = sizeof(sockaddr_in);
    if (family == AF_INET6) {
      set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
      auto& any = reinterpret_cast<sockaddr_in6&>(address);
      any.sin6_family = AF_INET6;
      any.sin6_port = htons(static_cast<std::uint16_t>(port));
      length = sizeof(sockaddr_in6);
    } else {
      auto& any = reinterpret_cast<sockaddr_in&>(address);
      any.sin_family = AF_INET;
      any.sin_port = htons(static_cast<std::uint16_t>(port));
    }
    if (bind(socket.get(), reinterpret_cast<sockaddr*>(&address), length) == 0 && listen(socket.get(), backlog) == 0) {
      return socket;
    }
    if (errno == EADDRINUSE) break;
  }
  throw IoError(fmt::format("cannot listen on port {}: {}; set MASTER_PORT to another one", port, reason()));
}

/// A connection to rank 0; invalid when nobody listens there yet.
Socket try_connect(const TcpStarOptions& options) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(options.address.c_str(), std::to_string(options.port).c_str(), &hints, &list);
  if (error == EAI_AGAIN) return {};
  if (error != 0) {
    throw IoError(fmt::format("MASTER_ADDR '{}' has no address: {}", options.address, gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> frees(list, freeaddrinfo);
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    Socket socket(::socket(entry->ai_family, entry->ai_socktype | SOCK_CLOEXEC, entry->ai_protocol));
    if (socket.valid() && connect(socket.get(), entry->ai_addr, entry->ai_addrlen) == 0) return socket;
  }
  return {};
}

Seconds until(Clock::time_point deadline) {
  return {std::max(std::chrono::duration<double>(deadline - Clock::now()).count(), 0.001)};
}

Clock::time_point deadline_of(const TcpStarOptions& options) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.timeout.value));
}

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

TcpStar::TcpStar(const TcpStarOptions& options) : rank_(options.rank), size_(options.size) {
  EBB_ASSERT(size_ > 0 && rank_ >= 0 && rank_ < size_);
  if (rank_ == 0) {
    wait_for_others(options);
  } else {
    join(options);
  }
  for (const Socket& peer : peers_) {
    if (!peer.valid()) continue;
    set_receive_timeout(peer, {0});
    set_option(peer, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(peer, SOL_SOCKET, SO_KEEPALIVE, 1);
  }
}

/// Whoever does not say hello properly, a port scan say, is hung up on.
void TcpStar::wait_for_others(const TcpStarOptions& options) {
  const auto deadline = deadline_of(options);
  const Socket listener = listen_on(options.port, size_);
  peers_.resize(static_cast<std::size_t>(size_));
  for (int come = 1; come < size_;) {
    pollfd ready{listener.get(), POLLIN, 0};
    const int waited = poll(&ready, 1, static_cast<int>(until(deadline).value * 1000) + 1);
    if (waited == 0) {
      throw IoError(
          fmt::format("{} of {} processes came to port {} within {} s; were all started, and does MASTER_ADDR "
                      "name the host of rank 0?",
                      come, size_, options.port, options.timeout.value));
    }
    Socket peer(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    Hello hello;
    if (!peer.valid()) continue;
    set_receive_timeout(peer, {std::min(until(deadline).value, 5.0)});
    if (!receive_all(peer, &hello, sizeof(hello)) || hello.greeting != kGreeting) continue;
    if (hello.size != static_cast<std::uint32_t>(size_) || hello.rank == 0 || hello.rank >= hello.size ||
        peers_[hello.rank].valid()) {
      throw IoError(
          fmt::format("a process came to port {} as rank {} of {}, where {} ranks were expected once each; "
                      "another run on this host? Set MASTER_PORT to another one",
                      options.port, hello.rank, hello.size, size_));
    }
    peers_[hello.rank] = std::move(peer);
    ++come;
  }
  for (int rank = 1; rank < size_; ++rank) send_message(peers_[static_cast<std::size_t>(rank)], rank, "welcome");
}

void TcpStar::join(const TcpStarOptions& options) {
  const auto deadline = deadline_of(options);
  const Hello hello{kGreeting, static_cast<std::uint32_t>(rank_), static_cast<std::uint32_t>(size_)};
  while (true) {
    Socket socket = try_connect(options);
    if (socket.valid() && send_all(socket, &hello, sizeof(hello))) {
      set_receive_timeout(socket, until(deadline));
      peers_.push_back(std::move(socket));
      receive_message(peers_[0], 0);
      return;
    }
    if (Clock::now() >= deadline) {
      throw IoError(
          fmt::format("rank 0 does not answer at {}:{} after {} s; is it started, and does MASTER_ADDR name "
                      "its host?",
                      options.address, options.port, options.timeout.value));
    }
    std::this_thread::sleep_for(kTryAgain);
  }
}

std::vector<std::string> TcpStar::exchange(std::string_view mine, bool everywhere) {
  std::vector<std::string> all(static_cast<std::size_t>(size_));
  if (rank_ != 0) {
    send_message(peers_[0], 0, mine);
    for (std::string& one : all) one = receive_message(peers_[0], 0);
    if (!everywhere) all.clear();
    return all;
  }
  all[0] = mine;
  for (int rank = 1; rank < size_; ++rank) {
    all[static_cast<std::size_t>(rank)] = receive_message(peers_[static_cast<std::size_t>(rank)], rank);
  }
  for (int rank = 1; rank < size_; ++rank) {
    for (const std::string& one : all) {
      send_message(peers_[static_cast<std::size_t>(rank)], rank, everywhere ? std::string_view(one) : "");
    }
  }
  return all;
}

}  // namespace ebb::replay
