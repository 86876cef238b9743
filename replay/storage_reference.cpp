#include "replay/storage_reference.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <memory>
#include <vector>

#include "models/errors.hpp"

namespace ebb::replay {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kBlock = std::int64_t{16} << 20;
constexpr std::size_t kAlignment = 4096;  // of memory and lengths under O_DIRECT
constexpr Bytes kTrial = 1_GiB;           // tells which way of writing is faster

struct Free {
  void operator()(std::byte* data) const { std::free(data); }
};
using Block = std::unique_ptr<std::byte, Free>;

/// Not zeros, which some file systems do not store.
Block noise() {
  Block block(static_cast<std::byte*>(std::aligned_alloc(kAlignment, kBlock)));
  if (!block) throw std::bad_alloc();
  std::uint64_t word = 0x9e3779b97f4a7c15U;
  for (std::int64_t at = 0; at < kBlock; at += 8) {
    word ^= word << 13;
    word ^= word >> 7;
    word ^= word << 17;  // Marsaglia's xorshift64
    std::memcpy(block.get() + at, &word, 8);
  }
  return block;
}

/// A file that has no name once it is there, so that it goes whatever ends this process.
class File {
 public:
  File(std::string path, int flags)
      : path_(std::move(path)),
        descriptor_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | flags, 0600)) {
    if (descriptor_ >= 0) ::unlink(path_.c_str());
  }
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  bool open() const { return descriptor_ >= 0; }

  void write(const std::byte* data, std::int64_t bytes) const {
    while (bytes > 0) {
      const ssize_t done = ::write(descriptor_, data, static_cast<std::size_t>(bytes));
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) fail("write");
      data += done;
      bytes -= done;
    }
  }
  void sync() const {
    if (::fsync(descriptor_) != 0) fail("fsync");
  }
  [[noreturn]] void fail(const char* what) const {
    throw IoError(fmt::format("cannot {} {}: {}", what, path_, std::strerror(errno)));
  }

 private:
  std::string path_;
  int descriptor_;
};

double write_all(const std::vector<std::unique_ptr<File>>& files, const std::byte* block, std::int64_t blocks) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::future<void>> writers;
  for (const std::unique_ptr<File>& file : files) {
    writers.push_back(std::async(std::launch::async, [&file, block, blocks] {
      for (std::int64_t i = 0; i < blocks; ++i) file->write(block, kBlock);
      file->sync();
    }));
  }
  for (std::future<void>& writer : writers) writer.wait();
  for (std::future<void>& writer : writers) writer.get();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

StorageRate write_once(const std::string& directory, Bytes bytes, int writers, bool direct) {
  const Block block = noise();
  const std::int64_t blocks = std::max<std::int64_t>(1, bytes.value / kBlock / writers);
  std::vector<std::unique_ptr<File>> files;
  for (int i = 0; i < writers; ++i) {
    const fs::path path = fs::path(directory) / fmt::format("large-writes-{}-{}.tmp", ::getpid(), i);
    files.push_back(std::make_unique<File>(path.string(), direct ? O_DIRECT : 0));
    if (files.back()->open()) continue;
    if (!direct) files.back()->fail("make");
    return {};  // not every file system takes O_DIRECT
  }
  return {{blocks * writers * kBlock}, {write_all(files, block.get(), blocks)}, direct};
}

}  // namespace

StorageReference::StorageReference(std::string directory, Bytes bytes, int writers)
    : directory_(std::move(directory)), bytes_(bytes), writers_(writers) {
  EBB_ASSERT(writers > 0);
}

void StorageReference::measure() {
  if (rates_.empty()) {
    const Bytes some = std::min(bytes_, kTrial);
    const StorageRate direct = write_once(directory_, some, writers_, true);
    direct_ = direct.rate().value >= write_once(directory_, some, writers_, false).rate().value;
  }
  rates_.push_back(write_once(directory_, bytes_, writers_, direct_));
}

BytesPerSecond StorageReference::mean() const {
  double sum = 0;
  for (const StorageRate& rate : rates_) sum += rate.rate().value;
  return {rates_.empty() ? 0 : sum / static_cast<double>(rates_.size())};
}

}  // namespace ebb::replay
