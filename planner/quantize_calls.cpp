#include "planner/quantize_calls.hpp"

#include <algorithm>

#include "planner/quantization.hpp"

namespace ebb {

namespace {

class Cutter {
 public:
  Cutter(const RankModel& rank, std::optional<Numel> limit, std::uint32_t first_chunk)
      : rank_(rank), limit_(limit), chunk_(first_chunk), shard_of_(rank.stage->parameters.size(), kNone) {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < rank.shards.size(); ++i) {
      shard_of_[rank.shards[i].parameter] = i;
      begin_.push_back(at);
      at += rank.shards[i].numel.value;
    }
    begin_.push_back(at);
  }

  void add(const BufferLayout& buffer) {
    for (const ParameterRange& range : buffer.ranges) {
      const Numel numel = range.end - range.start;
      if (limit_ && sum_ + numel > *limit_) close(buffer.expert);
      call_.parameters.push_back(range.parameter);
      sum_ += numel;
    }
  }

  void close(bool expert) {
    if (call_.parameters.empty()) return;
    call_.expert = expert;
    if (limit_) call_.chunk = chunk_++;
    std::vector<std::size_t> owned;
    for (const std::uint32_t parameter : call_.parameters)
      if (shard_of_[parameter] != kNone) owned.push_back(shard_of_[parameter]);
    std::sort(owned.begin(), owned.end());
    const std::span<const Shard> shards(rank_.shards);
    for (std::size_t i = 0; i < owned.size();) {
      const std::size_t first = owned[i];
      std::size_t end = first;
      for (; i < owned.size() && owned[i] == end; ++i) ++end;
      call_.runs.push_back({shards.subspan(first, end - first), {begin_[first], begin_[end]}, call_.chunk});
    }
    calls_.push_back(std::move(call_));
    call_ = {};
    sum_ = Numel{0};
  }

  std::vector<QuantizeCall> take() { return std::move(calls_); }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  const RankModel& rank_;
  std::optional<Numel> limit_;
  std::uint32_t chunk_;
  std::vector<std::size_t> shard_of_;  // by parameter: a rank owns at most one part of each
  std::vector<std::int64_t> begin_;    // of each shard in the owned elements
  QuantizeCall call_;
  Numel sum_{0};
  std::vector<QuantizeCall> calls_;
};

}  // namespace

std::uint32_t QuantizeCall::tensors() const {
  std::uint32_t sum = 0;
  for (const Part& run : runs) sum += run.tensors();
  return sum;
}

std::vector<QuantizeCall> quantize_calls(const RankModel& rank, std::optional<Numel> limit, std::uint32_t first_chunk) {
  if (!requantizes(rank.job->precision)) return {};
  Cutter cutter(rank, limit, first_chunk);
  for (const bool expert : {false, true}) {
    for (const BufferLayout& buffer : rank.stage->buffers)
      if (buffer.quantized && buffer.expert == expert) cutter.add(buffer);
    cutter.close(expert);
  }
  return cutter.take();
}

}  // namespace ebb
