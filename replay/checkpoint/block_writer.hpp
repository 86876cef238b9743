// BlockWriter: bytes that come in any order, in small portions, leave as large aligned writes of several threads.
//
// A file is a row of blocks. put() copies into the buffer of the block concerned; when a block has all its bytes it
// goes to a writer thread, which hashes it, shows it to `look`, and writes it. So the caller never waits for the disk
// unless the disk is slower than it for good. The threads hash at the same time and write one after another: a file
// system gives a growing file to one direct write at a time, and several at once were slower on every disk tried.
// Buffers are bounded: when more blocks are begun than there are buffers for, the one that has waited longest goes to
// the disk unfinished and is read back when its next bytes come. Not here: what the bytes mean.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "models/units.hpp"
#include "replay/checkpoint/file.hpp"
#include "replay/checkpoint/hashes.hpp"

namespace ebb::replay::checkpoint {

/// Usable from one thread.
class BlockWriter {
 public:
  /// Of bytes [at, at + size) of the file; called once for each block, by any writer thread.
  using Hash = std::function<Hash128(std::int64_t at, std::span<const std::byte> block)>;

  /// Of a file of `bytes`, in blocks of `block` (a multiple of kAlignment). `file` outlives this.
  BlockWriter(File& file, Bytes bytes, Bytes block, int threads, Hash hash);
  ~BlockWriter();  // what is not written yet never is
  BlockWriter(const BlockWriter&) = delete;
  BlockWriter& operator=(const BlockWriter&) = delete;

  /// Each byte once. Throws what a writer thread has met.
  void put(std::int64_t at, std::span<const std::byte> bytes);
  /// All blocks are complete and written (to a multiple of kAlignment), not synced. Their hashes.
  std::vector<Hash128> finish();

 private:
  using Buffer = AlignedBytes*;
  struct Block {
    std::int64_t filled = 0;
    Buffer buffer = nullptr;
    bool spilled = false;
  };
  struct Task {
    std::int64_t block = 0;
    Buffer buffer = nullptr;
  };

  std::int64_t size_of_block(std::int64_t block) const;
  void begin(std::int64_t block);
  void spill();
  Buffer take_buffer();
  void submit(std::int64_t block);
  void work();
  void write(const Task& task);

  File& file_;
  std::int64_t bytes_;
  std::int64_t block_;
  Hash hash_;
  // The caller's alone:
  std::vector<Block> blocks_;
  std::list<std::int64_t> open_;  // blocks with a buffer, the one touched last in front
  std::deque<AlignedBytes> buffers_;
  // Shared:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Buffer> free_;
  std::deque<Task> tasks_;
  std::vector<Hash128> hashes_;
  std::mutex disk_;  // held while writing
  std::int64_t unwritten_ = 0;
  std::exception_ptr error_;
  bool stop_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace ebb::replay::checkpoint
