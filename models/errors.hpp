// The three kinds of error: the user's (InputError), the environment's (IoError; CUDA and NCCL have
// theirs in replay/), and a bug (EBB_ASSERT, always on). Exceptions, caught once in each main().
#pragma once

#include <stdexcept>
#include <string>

namespace ebb {

/// Where in the user's files something stands. line and column count from 1; 0 means "unknown".
struct Place {
  std::string file;
  int line = 0;
  int column = 0;

  /// "job.yaml:14:9", "job.yaml" when the line is unknown, "" when the file is.
  std::string text() const;
};

/// The user's input is wrong. what() is one complete message: "file:line:column: problem; cure".
class InputError : public std::runtime_error {
 public:
  InputError(const Place& place, const std::string& problem, const std::string& cure = "");
};

/// A file cannot be read or written.
class IoError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

}  // namespace ebb

/// A bug in Ebb when false; on in every build.
#define EBB_ASSERT(expression) \
  (static_cast<bool>(expression) ? void(0) : ::ebb::assertion_failed(#expression, __FILE__, __LINE__))
