// Disks that fail and machines that lose power. The calls of the C library that a save makes go through this file first
// (the linker prefers its definitions), which notes them down and, where a test asks, makes the n-th one fail.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <set>

#include "tests/catch.hpp"
#include "tests/replay/checkpoint_cases.hpp"

namespace {

struct Call {
  std::string name;  // "write", "fsync", "rename"
  std::string path;
};

std::mutex mutex;
std::vector<Call> calls;
std::atomic<bool> noting{false};
std::atomic<int> fail_at{-1};  // counts down over calls that write; 0: this one fails
std::atomic<int> failure{0};

std::string path_of(int fd) {
  char path[4096];
  const ssize_t size = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path);
  return size < 0 ? "" : std::string(path, static_cast<std::size_t>(size));
}

/// Whether the call is to fail.
bool note(const char* name, const std::string& path) {
  if (!noting) return false;
  const std::lock_guard lock(mutex);
  calls.push_back({name, path});
  if (fail_at < 0 || fail_at-- != 0) return false;
  errno = failure;
  return true;
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {
ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  if (note("write", path_of(fd))) return -1;
  return real<ssize_t(int, const void*, size_t, off_t)>("pwrite")(fd, data, size, at);
}
int fsync(int fd) {
  if (note("fsync", path_of(fd))) return -1;
  return real<int(int)>("fsync")(fd);
}
int ftruncate(int fd, off_t size) noexcept {
  if (note("truncate", path_of(fd))) return -1;
  return real<int(int, off_t)>("ftruncate")(fd, size);
}
int rename(const char* from, const char* to) noexcept {
  if (note("rename", from)) return -1;
  return real<int(const char*, const char*)>("rename")(from, to);
}
int renameat2(int at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  if (note("rename", from)) return -1;
  return real<int(int, const char*, int, const char*, unsigned)>("renameat2")(at, from, to_at, to, flags);
}
}

namespace ebb::test {

namespace {

/// The calls of `act`, of which number `which` fails with `error` (-1: none).
template <class Act>
std::vector<Call> watched(const Act& act, int which = -1, int error = 0) {
  calls.clear();
  fail_at = which;
  failure = error;
  noting = true;
  try {
    act();
  } catch (...) {
    noting = false;
    throw;
  }
  noting = false;
  return calls;
}

}  // namespace

TEST_CASE("whatever call of a save fails, there is an IoError with the path, and the old checkpoint is the one") {
  const Case c;
  for (const int error : {ENOSPC, EIO, EDQUOT, EROFS}) {
    int failed = 0;
    for (int which = 0;; ++which) {
      const FakeRoot root(memory());
      save(root.path(), c, 2, 1);
      std::string message;
      std::size_t seen = 0;
      message = io_error_of([&] { seen = watched([&] { save(root.path(), c, 2, 2); }, which, error).size(); });
      if (message.empty()) {
        REQUIRE(seen <= static_cast<std::size_t>(which));  // it was never reached
        break;
      }
      ++failed;
      INFO(which << ": " << message);
      CHECK(message.find(root.path()) != std::string::npos);
      CHECK(message.find(std::strerror(error)) != std::string::npos);
      CHECK(message.find("; ") != std::string::npos);
      // The only failure behind the rename is that of making it durable.
      const std::vector<std::string> all = ck::list(root.path());
      const bool renamed = message.find("fsync of the directory") != std::string::npos && all.size() == 2;
      CHECK((all.size() == 1 || renamed));
      CHECK(holds(ck::Reader(root.path()), c, renamed ? 2 : 1));
      for (const auto& entry : std::filesystem::directory_iterator(root.path())) {
        INFO(entry.path().string());
        CHECK(entry.path().extension() != ".partial");  // a full disk does not stay full
      }
      save(root.path(), c, 2, 3);  // and the next save is as any
      CHECK(holds(ck::Reader(root.path()), c, 3));
    }
    CHECK(failed > 20);
  }
}

TEST_CASE("every file is on the disk before its directory gets its name, and the name before old ones go") {
  const Case c;
  for (const std::int64_t keep : {0, 1}) {
    const FakeRoot root;
    save(root.path(), c, 2, 1);
    const std::vector<Call> log = watched([&] { save(root.path(), c, 2, 2, static_cast<std::size_t>(keep)); });
    const std::string partial = root.path() + "/step-00000002.partial";
    const auto renamed = std::find_if(log.begin(), log.end(), [](const Call& call) { return call.name == "rename"; });
    REQUIRE(renamed != log.end());
    CHECK(renamed->path == partial);
    std::set<std::string> unsynced;
    std::map<std::string, int> synced;
    for (auto call = log.begin(); call != renamed; ++call) {
      if (call->name == "fsync")
        unsynced.erase(call->path), ++synced[call->path];
      else
        unsynced.insert(call->path);
    }
    CHECK(unsynced.empty());
    for (const std::string name : {"/manifest.json", "/rank-00000.safetensors", "/rank-00001.safetensors", ""})
      CHECK(synced[partial + name] >= 1);
    CHECK(std::prev(renamed)->path == partial);  // with all names in it
    REQUIRE(std::next(renamed) != log.end());
    CHECK(std::next(renamed)->name == "fsync");
    CHECK(std::next(renamed)->path == root.path());
    const bool removes = std::next(renamed, 2) != log.end();
    CHECK(removes == (keep == 1));  // by renaming first
    if (removes) CHECK(std::next(renamed, 2)->path == root.path() + "/step-00000001");
  }
}

TEST_CASE("a file where a directory should be, and a directory that nobody may write") {
  const FakeRoot root;
  const Case c;
  spill(root.path() + "/file", "");
  CHECK(io_error_of([&] { save(root.path() + "/file", c, 1, 1); }).find("a file stands where a directory") !=
        std::string::npos);
  CHECK(io_error_of([&] { save(root.path() + "/file/below", c, 1, 1); }).find(root.path()) != std::string::npos);
  CHECK(!io_error_of([&] { save("/proc/ebb", c, 1, 1); }).empty());
  if (::geteuid() == 0) return;  // who may write everywhere
  std::filesystem::create_directory(root.path() + "/locked");
  ::chmod((root.path() + "/locked").c_str(), 0555);
  CHECK(io_error_of([&] { save(root.path() + "/locked", c, 1, 1); }).find("may this user write") != std::string::npos);
  ::chmod((root.path() + "/locked").c_str(), 0755);
}

TEST_CASE("a checkpoint that the file system has no room for is refused before anything is written") {
  const FakeRoot root;
  Case c;
  c.parameters = {{"huge", {1 << 20, 1 << 22}}};  // 16 TiB a state
  const std::string message =
      io_error_of([&] { ck::RankWriter(root.path(), description_of(c, 1, 1), 0, c.parameters, pieces_of(c, 0, 1)); });
  INFO(message);
  CHECK(message.find("56.00 TiB") != std::string::npos);
  CHECK(message.find("free some space") != std::string::npos);
  CHECK(ck::list(root.path()).empty());
  CHECK(std::filesystem::is_empty(root.path()));
}

}  // namespace ebb::test
