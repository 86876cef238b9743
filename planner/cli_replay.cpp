// `ebb replay ARGS...`: becomes `ebb-replay ARGS...`, the one beside this executable or else the one in PATH. Two
// executables, because planning needs no CUDA.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "planner/cli.hpp"

namespace ebb::cli {

int run_replay(const ReplayOptions& options) {
  std::vector<std::string> words = options.arguments;
  words.insert(words.begin(), "ebb-replay");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string beside = (self.parent_path() / "ebb-replay").string();
  std::signal(SIGPIPE, SIG_DFL);  // main() ignores it, and an ignored signal would stay so
  if (!error && ::access(beside.c_str(), X_OK) == 0)
    ::execv(beside.c_str(), argv.data());
  else
    ::execvp(argv[0], argv.data());
  if (errno != ENOENT) throw IoError(fmt::format("cannot start ebb-replay: {}", std::strerror(errno)));
  throw IoError("ebb-replay is neither beside ebb nor in PATH; build it with ./run replay --help");
}

}  // namespace ebb::cli
