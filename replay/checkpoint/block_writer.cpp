#include "replay/checkpoint/block_writer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "models/errors.hpp"

namespace ebb::replay::checkpoint {

namespace {
// Begun blocks that wait in memory: a save window by window begins one of each state, and one more where pieces end.
constexpr std::size_t kMostOpen = 8;
}  // namespace

BlockWriter::BlockWriter(File& file, Bytes bytes, Bytes block, int threads, Hash hash)
    : file_(file), bytes_(bytes.value), block_(block.value), hash_(std::move(hash)) {
  EBB_ASSERT(block_ > 0 && block_ % kAlignment == 0 && threads > 0);
  unwritten_ = ceil_div(bytes_, block_);
  blocks_.resize(static_cast<std::size_t>(unwritten_));
  hashes_.resize(blocks_.size());
  const auto most = std::min(static_cast<std::size_t>(threads), blocks_.size());
  for (std::size_t i = 0; i < most; ++i) threads_.emplace_back([this] { work(); });
}

BlockWriter::~BlockWriter() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    tasks_.clear();
  }
  changed_.notify_all();
}

std::int64_t BlockWriter::size_of_block(std::int64_t block) const { return std::min(block_, bytes_ - block * block_); }

void BlockWriter::put(std::int64_t at, std::span<const std::byte> bytes) {
  EBB_ASSERT(at >= 0 && at + static_cast<std::int64_t>(bytes.size()) <= bytes_);
  while (!bytes.empty()) {
    const std::int64_t index = at / block_;
    const std::int64_t within = at % block_;
    const std::int64_t count = std::min(size_of_block(index) - within, static_cast<std::int64_t>(bytes.size()));
    begin(index);
    Block& block = blocks_[static_cast<std::size_t>(index)];
    std::memcpy(block.buffer->data() + within, bytes.data(), static_cast<std::size_t>(count));
    block.filled += count;
    EBB_ASSERT(block.filled <= size_of_block(index));
    if (block.filled == size_of_block(index)) submit(index);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    at += count;
  }
}

/// Gives `block` its buffer.
void BlockWriter::begin(std::int64_t block) {
  Block& b = blocks_[static_cast<std::size_t>(block)];
  if (b.buffer != nullptr) {
    if (open_.front() != block) open_.splice(open_.begin(), open_, std::find(open_.begin(), open_.end(), block));
    return;
  }
  EBB_ASSERT(b.filled < size_of_block(block));
  if (open_.size() == kMostOpen) spill();
  b.buffer = take_buffer();
  open_.push_front(block);
  if (std::exchange(b.spilled, false)) file_.read(block * block_, {b.buffer->data(), static_cast<std::size_t>(block_)});
}

void BlockWriter::spill() {
  const std::int64_t index = open_.back();
  open_.pop_back();
  Block& block = blocks_[static_cast<std::size_t>(index)];
  const std::int64_t size = round_up(size_of_block(index), kAlignment);
  file_.write(index * block_, {block.buffer->data(), static_cast<std::size_t>(size)});
  block.spilled = true;
  const std::lock_guard lock(mutex_);
  free_.push_back(std::exchange(block.buffer, nullptr));
}

BlockWriter::Buffer BlockWriter::take_buffer() {
  std::unique_lock lock(mutex_);
  // Twice as many as threads, so that each finds the next block when it has written one.
  const bool room = buffers_.size() < kMostOpen + 2 * threads_.size();
  if (free_.empty() && room && !error_) {
    buffers_.emplace_back(block_);
    return &buffers_.back();
  }
  changed_.wait(lock, [this] { return !free_.empty() || error_; });
  if (error_) std::rethrow_exception(error_);
  const Buffer buffer = free_.back();
  free_.pop_back();
  return buffer;
}

void BlockWriter::submit(std::int64_t block) {
  Block& b = blocks_[static_cast<std::size_t>(block)];
  open_.remove(block);
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back({block, std::exchange(b.buffer, nullptr)});
  }
  changed_.notify_all();
}

void BlockWriter::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
    if (stop_) return;
    const Task task = tasks_.front();
    tasks_.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      write(task);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !error_) error_ = error;
    free_.push_back(task.buffer);
    --unwritten_;
    changed_.notify_all();
  }
}

void BlockWriter::write(const Task& task) {
  const std::int64_t size = size_of_block(task.block);
  const std::int64_t padded = round_up(size, kAlignment);
  std::byte* data = task.buffer->data();
  std::fill(data + size, data + padded, std::byte{0});
  hashes_[static_cast<std::size_t>(task.block)] = hash_(task.block * block_, {data, static_cast<std::size_t>(size)});
  const std::lock_guard one_at_a_time(disk_);
  file_.write(task.block * block_, {data, static_cast<std::size_t>(padded)});
}

std::vector<Hash128> BlockWriter::finish() {
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    EBB_ASSERT(blocks_[i].filled == size_of_block(static_cast<std::int64_t>(i)));
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return unwritten_ == 0 || error_; });
  if (error_) std::rethrow_exception(error_);
  return hashes_;
}

}  // namespace ebb::replay::checkpoint
