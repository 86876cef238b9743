#include "replay/checkpoint/hash_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "models/errors.hpp"
#include "replay/checkpoint/content_meter.hpp"
#include "replay/checkpoint/directory.hpp"
#include "replay/checkpoint/file.hpp"

namespace ebb::replay::checkpoint {

namespace {

constexpr const char* kOther = "take another checkpoint";

/// Threads take block after block, over all files.
class HashCheck {
 public:
  HashCheck(const std::string& directory, const Manifest& manifest) : directory_(directory), manifest_(manifest) {
    for (std::size_t i = 0; i < manifest.files.size(); ++i) {
      const auto header = static_cast<std::int64_t>(header_text(header_of(manifest, i)).size());
      meters_.emplace_back(manifest, i, header);
      first_.push_back(blocks_);
      blocks_ += manifest.files[i].blocks.size();
    }
  }

  void run(int threads) {
    {
      std::vector<std::jthread> workers;
      for (int i = 0; i < threads; ++i) workers.emplace_back([this] { work(); });
    }
    if (error_) std::rethrow_exception(error_);
    for (std::size_t i = 0; i < kSavedStates.size(); ++i)
      if (contents_[i] != manifest_.contents[i])
        throw InputError({directory_ + "/" + kManifest},
                         fmt::format("the content of {} is not what it says", name_of_state(kSavedStates[i])), kOther);
  }

 private:
  void work() {
    try {
      std::size_t opened = manifest_.files.size();
      File file;
      std::optional<AlignedBytes> buffer;
      Contents contents{};
      for (std::size_t k = next_++; k < blocks_ && !failed_; k = next_++) {
        const auto i = static_cast<std::size_t>(std::upper_bound(first_.begin(), first_.end(), k) - first_.begin()) - 1;
        if (i != opened) {
          file = File::open(directory_ + "/" + manifest_.files[i].name, true);
          buffer.emplace(manifest_.files[i].block.value);
          opened = i;
        }
        check(file, i, k - first_[i], *buffer, contents);
      }
      const std::lock_guard lock(mutex_);
      add_contents(contents_, contents);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      failed_ = true;
    }
  }

  void check(const File& file, std::size_t i, std::size_t block, const AlignedBytes& buffer, Contents& contents) {
    const DataFile& data = manifest_.files[i];
    const std::int64_t at = static_cast<std::int64_t>(block) * data.block.value;
    const std::int64_t size = std::min(data.block.value, data.bytes.value - at);
    const auto padded = static_cast<std::size_t>(round_up(size, kAlignment));
    if (file.read(at, {buffer.data(), padded}) != size)
      throw InputError({file.path()}, fmt::format("it ends within {} bytes from byte {} on", size, at),
                       "it is truncated");
    const std::span<const std::byte> bytes(buffer.data(), static_cast<std::size_t>(size));
    if (hash_and_meter(meters_[i], at, bytes, contents) != data.blocks[block])
      throw InputError({file.path()}, fmt::format("bytes {} to {} are not those that were saved", at, at + size - 1),
                       "it is damaged, or of another save: take another checkpoint");
  }

  const std::string& directory_;
  const Manifest& manifest_;
  std::vector<ContentMeter> meters_;  // by file
  std::vector<std::size_t> first_;    // block of each file, counted over all
  std::size_t blocks_ = 0;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::exception_ptr error_;
  Contents contents_{};
};

}  // namespace

void check_hashes(const std::string& directory, const Manifest& manifest, int threads) {
  HashCheck(directory, manifest).run(threads);
}

}  // namespace ebb::replay::checkpoint
