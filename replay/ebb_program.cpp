#include "replay/ebb_program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <vector>

#include "models/errors.hpp"

namespace ebb::replay {

namespace fs = std::filesystem;

namespace {

/// "ebb" alone is looked up in PATH.
std::string program() {
  std::error_code failed;
  const fs::path self = fs::read_symlink("/proc/self/exe", failed);
  const fs::path beside = self.parent_path() / "ebb";
  if (!failed && ::access(beside.c_str(), X_OK) == 0) return beside.string();
  return "ebb";
}

/// stdout to nowhere; RAII, as every exit must free it.
class FileActions {
 public:
  FileActions() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

}  // namespace

ScratchDirectory::ScratchDirectory(const std::optional<std::string>& parent) {
  std::error_code failed;
  fs::path in = parent ? fs::path(*parent) : fs::temp_directory_path(failed);
  if (failed) in = "/tmp";
  if (parent) fs::create_directories(in, failed);  // mkdtemp says what is wrong
  std::string name = (in / "ebb-replay-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw IoError(fmt::format("cannot make a temporary directory {}: {}", name, std::strerror(errno)));
  path_ = name;
  unfinished_.emplace(name);
  unfinished_->own(1, {});
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;  // nothing to be done about it in a destructor
  fs::remove_all(path_, ignored);
}

int run_ebb(std::span<const std::string> arguments) {
  std::string name = program();
  std::vector<std::string> words(arguments.begin(), arguments.end());
  std::vector<char*> argv = {name.data()};
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const FileActions actions;
  pid_t child = 0;
  if (const int error = ::posix_spawnp(&child, name.c_str(), actions.get(), nullptr, argv.data(), environ); error != 0)
    throw IoError(
        fmt::format("cannot start {}: {}; it belongs beside ebb-replay or in PATH", name, std::strerror(error)));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw IoError(fmt::format("cannot wait for {}: {}", name, std::strerror(errno)));
  }
  if (!WIFEXITED(status)) throw IoError(fmt::format("{} was ended by signal {}", name, WTERMSIG(status)));
  if (WEXITSTATUS(status) == 127) throw IoError(fmt::format("{} could not be run", name));
  return WEXITSTATUS(status);
}

}  // namespace ebb::replay
