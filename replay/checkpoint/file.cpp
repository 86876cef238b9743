#include "replay/checkpoint/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <utility>

#include "models/errors.hpp"
#include "models/quantity_text.hpp"
#include "models/units.hpp"

namespace ebb::replay::checkpoint {

namespace {

constexpr std::int64_t kHugePage = std::int64_t{2} << 20;

std::string_view cure_of(int error) {
  switch (error) {
    case ENOSPC:
      return "free some space, keep fewer checkpoints, or write them to another file system";
    case EDQUOT:
      return "the quota is used up: remove files or write to another file system";
    case EROFS:
      return "the file system is read-only: write to another one";
    case EACCES:
    case EPERM:
      return "may this user write there?";
    case ENOTDIR:
      return "a file stands where a directory should";
    case EMFILE:
    case ENFILE:
      return "too many open files: raise ulimit -n";
    case EIO:
      return "the device reports an error: look into the kernel's log before trusting it with another checkpoint";
    case ELOOP:
      return "a symbolic link stands there, which no save follows: remove it";
    case EFBIG:
      return "the file system or ulimit -f does not allow files this large";
    default:
      return "";
  }
}

std::string amount(std::string_view doing, std::size_t bytes, std::int64_t at) {
  return fmt::format("{} {} at byte {}", doing, format_bytes({static_cast<std::int64_t>(bytes)}), at);
}

std::string_view cure_of_reading(int error) {
  return error == EACCES || error == EPERM ? "may this user read it?" : cure_of(error);
}

[[noreturn]] void throw_with_cure(const std::string& path, std::string_view doing, int error, std::string_view cure) {
  throw IoError(fmt::format("{}: {}: {}{}{}", path, doing, std::strerror(error), cure.empty() ? "" : "; ", cure));
}

/// A call again while signals interrupt it.
template <class Call>
auto unless_interrupted(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

int open_file(const std::string& path, int flags, bool direct) {
  const int fd = unless_interrupted([&] { return ::open(path.c_str(), flags | (direct ? O_DIRECT : 0), 0666); });
  if (fd >= 0 || !direct || errno != EINVAL) return fd;
  return open_file(path, flags, false);  // e.g. tmpfs of older kernels
}

/// After EINVAL: some file systems take the flag and refuse the transfer. Whether it is worth another try; several
/// threads may find out at once.
bool without_direct(int fd, int error, bool* tried) {
  if (error != EINVAL || std::exchange(*tried, true)) return false;
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ::fcntl(fd, F_SETFL, flags & ~O_DIRECT) == 0;
}

}  // namespace

AlignedBytes::AlignedBytes(std::int64_t bytes) {
  // Large ones in huge pages: a save begins by touching all its buffers, and 4 KiB at a time that costs more than the
  // copies into them.
  const std::int64_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
  const auto size = static_cast<std::size_t>(round_up(std::max<std::int64_t>(bytes, 1), alignment));
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(static_cast<std::size_t>(alignment), size)));
  if (data_ == nullptr) throw std::bad_alloc();
  if (alignment == kHugePage) ::madvise(data_.get(), size, MADV_HUGEPAGE);  // a wish
}

void AlignedBytes::Free::operator()(std::byte* data) const { std::free(data); }

void throw_io_error(const std::string& path, std::string_view doing, int error) {
  throw_with_cure(path, doing, error, cure_of(error));
}

File File::create(const std::string& path, bool direct) {
  for (;;) {
    const int fd = open_file(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, direct);
    if (fd < 0) throw_io_error(path, "creating it", errno);
    File file(path, fd);
    if (unless_interrupted([&] { return ::flock(fd, LOCK_EX | LOCK_NB); }) != 0) {
      // Some network file systems have no locks: nothing then tells two saves apart.
      if (errno == EWOULDBLOCK)
        throw IoError(path + ": another save is writing this checkpoint; wait for it, or give each job a directory");
    }
    // Between opening and locking, somebody who clears up may have removed it.
    file.stamp();  // an error where it cannot be looked at, which is_there() does not tell from another file
    if (!file.is_there()) continue;
    try {
      file.truncate(0);
    } catch (...) {
      ::unlink(path.c_str());
      throw;
    }
    return file;
  }
}

File File::open(const std::string& path, bool direct) {
  const int fd = open_file(path, O_RDONLY | O_CLOEXEC, direct);
  if (fd < 0) throw_with_cure(path, "opening it", errno, cure_of_reading(errno));
  return {path, fd};
}

File File::create_small(const std::string& path) {
  const int fd = open_file(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, false);
  if (fd < 0) throw_io_error(path, "creating it", errno);
  return {path, fd};
}

File::~File() {
  if (fd_ >= 0) ::close(fd_);  // what must be on the disk has been synced before
}
File::File(File&& other) noexcept : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  return *this;
}

void File::write(std::int64_t at, std::span<const std::byte> bytes) {
  bool tried = false;
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd_, bytes.data(), bytes.size(), at);
    if (count < 0 && (errno == EINTR || without_direct(fd_, errno, &tried))) continue;
    if (count <= 0) throw_io_error(path_, amount("writing", bytes.size(), at), count == 0 ? EIO : errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    at += count;
  }
}

std::int64_t File::read(std::int64_t at, std::span<std::byte> bytes) const {
  bool tried = false;
  std::int64_t done = 0;
  while (!bytes.empty()) {
    const ssize_t count = ::pread(fd_, bytes.data(), bytes.size(), at);
    if (count < 0 && (errno == EINTR || without_direct(fd_, errno, &tried))) continue;
    if (count < 0) throw_io_error(path_, amount("reading", bytes.size(), at), errno);
    if (count == 0) break;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    at += count;
    done += count;
  }
  return done;
}

void File::reserve(std::int64_t bytes) {
  struct statvfs status {};
  if (::fstatvfs(fd_, &status) == 0 && status.f_frsize != 0 &&
      status.f_bavail < static_cast<std::uint64_t>(ceil_div(bytes, static_cast<std::int64_t>(status.f_frsize))))
    throw_io_error(path_,
                   fmt::format("making room for {} where {} are free", format_bytes({bytes}),
                               format_bytes({static_cast<std::int64_t>(status.f_bavail * status.f_frsize)})),
                   ENOSPC);
  truncate(bytes);
  // In one extent, as far as the file system can: the blocks of a save come in the order of windows, not of the file.
  if (unless_interrupted([&] { return ::fallocate(fd_, 0, 0, bytes); }) != 0 && errno == ENOSPC)
    throw_io_error(path_, fmt::format("making room for {}", format_bytes({bytes})), errno);
}

void File::truncate(std::int64_t bytes) {
  if (unless_interrupted([&] { return ::ftruncate(fd_, bytes); }) != 0)
    throw_io_error(path_, fmt::format("setting its size to {}", format_bytes({bytes})), errno);
}

void File::sync() {
  if (unless_interrupted([&] { return ::fsync(fd_); }) != 0) throw_io_error(path_, "fsync", errno);
}

File::Stamp File::stamp() const {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) throw_io_error(path_, "looking at it", errno);
  return {status.st_dev, status.st_ino, status.st_size,
          std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

bool File::is_there() const {
  struct stat mine {};
  struct stat there {};
  return ::fstat(fd_, &mine) == 0 && ::lstat(path_.c_str(), &there) == 0 && there.st_ino == mine.st_ino &&
         there.st_dev == mine.st_dev;
}

bool is_locked(const std::string& path) {
  const int fd = open_file(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, false);
  if (fd < 0) return false;
  const bool locked = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return locked;
}

void sync_directory(const std::string& path) {
  const int fd = unless_interrupted([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (fd < 0) throw_io_error(path, "opening the directory", errno);
  const int result = unless_interrupted([&] { return ::fsync(fd); });
  const int error = errno;
  ::close(fd);
  // Some file systems keep no directories apart from their files and say so.
  if (result != 0 && error != EINVAL) throw_io_error(path, "fsync of the directory", error);
}

void make_directories(const std::string& path) {
  const std::string above = std::filesystem::path(path).parent_path().string();
  int result = ::mkdir(path.c_str(), 0777);
  std::error_code ignored;
  if (result != 0 && errno == ENOENT && !above.empty() && !std::filesystem::exists(above, ignored)) {
    make_directories(above);
    result = ::mkdir(path.c_str(), 0777);
  }
  if (result == 0) return sync_directory(above.empty() ? "." : above);
  const int error = errno;
  struct stat status {};
  const bool is_there = error == EEXIST && ::stat(path.c_str(), &status) == 0;
  if (is_there && S_ISDIR(status.st_mode)) return;
  throw_io_error(path, "making the directory", is_there ? ENOTDIR : error);
}

void make_own_directory(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode))
    throw_io_error(path, "making the directory", ELOOP);
  make_directories(path);
}

std::string read_small_file(const std::string& path, std::int64_t most) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) throw_with_cure(path, "looking at it", errno, cure_of_reading(errno));
  if (!S_ISREG(status.st_mode)) throw InputError({path}, "this is no file", "take another checkpoint");
  const File file = File::open(path, false);
  if (status.st_size > most)
    throw InputError({path}, "this file is larger than " + format_bytes({most}), "is it the right file?");
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  text.resize(static_cast<std::size_t>(file.read(0, std::as_writable_bytes(std::span(text)))));
  return text;
}

void write_small_file(const std::string& path, std::string_view text) {
  File file = File::create_small(path);
  file.write(0, std::as_bytes(std::span(text)));
  file.sync();
}

}  // namespace ebb::replay::checkpoint
