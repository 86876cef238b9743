// A file of a checkpoint, through the operating system: every call checked, every error an IoError with the path, what
// was done, and the cure. O_DIRECT where the file system takes it: a save of hundreds of GB must neither push
// everything else out of the page cache nor run at the speed of copying into it.
//
// Not here: what is in the files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ebb::replay::checkpoint {

/// What O_DIRECT wants of addresses, offsets and lengths: the largest logical block of common devices.
inline constexpr std::int64_t kAlignment = 4096;

/// Memory at a multiple of kAlignment.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::int64_t bytes);
  std::byte* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
};

/// IoError for errno `error` while `doing` ("writing 8.0 MiB") something with `path`.
[[noreturn]] void throw_io_error(const std::string& path, std::string_view doing, int error);

class File {
 public:
  /// Which file this is and whether it has changed.
  struct Stamp {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::int64_t bytes = 0;
    std::int64_t changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };

  File() = default;
  /// Created, emptied, and locked against a second save until it closes. IoError when another has it.
  static File create(const std::string& path, bool direct);
  static File open(const std::string& path, bool direct);
  /// A new small file, or the old one emptied; not direct, not locked.
  static File create_small(const std::string& path);
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;

  const std::string& path() const { return path_; }
  /// All bytes or an error, from any thread. Direct: addresses, offsets and sizes are aligned. `read` returns how many
  /// bytes there were before the end of the file.
  void write(std::int64_t at, std::span<const std::byte> bytes);
  std::int64_t read(std::int64_t at, std::span<std::byte> bytes) const;
  /// Makes the file `bytes` long, without blocks yet. IoError where the file system has no room for them, so that a
  /// full disk shows before anything is written. (Taking the blocks now, with fallocate, makes the writes slower: each
  /// has to turn unwritten extents into written ones.)
  void reserve(std::int64_t bytes);
  void truncate(std::int64_t bytes);
  void sync();
  Stamp stamp() const;
  /// Whether this file still is what its path names.
  bool is_there() const;

 private:
  File(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_ = -1;
};

/// Whether a save has `path` open.
bool is_locked(const std::string& path);
/// Makes a directory and all above it, durably.
void make_directories(const std::string& path);
/// Makes a directory that is nobody's but Ebb's, durably; one that is there stays. IoError where a symbolic link has
/// the name: what it points to is not Ebb's.
void make_own_directory(const std::string& path);
void sync_directory(const std::string& path);
/// All of a file of at most `most` bytes, whatever they are. InputError: no regular file, or larger.
std::string read_small_file(const std::string& path, std::int64_t most);
/// A new small file, durable.
void write_small_file(const std::string& path, std::string_view text);

}  // namespace ebb::replay::checkpoint
