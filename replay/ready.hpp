// Ready actions: a Program's runs and transfers in the tables that launchers and copies take, made once.
//
// Addresses of device buffers change from step to step (a caching allocator gives them), so tables hold offsets; host
// addresses stay. Not here: CUDA, streams.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "kernels/adamw.hpp"
#include "kernels/runs.hpp"
#include "kernels/types.hpp"
#include "replay/program.hpp"

namespace ebb::replay {

kernels::Type kernel_type(Dtype type);

/// Where runs of one state lie, for digests.
struct DigestRuns {
  StateBits state = kMaster;
  kernels::Type type = kernels::Type::fp32;
  std::vector<kernels::Run> runs;
};

struct ReadyAdam {
  bool foreach = false;
  BufferId moments, masters, grads, params, scratch;
  kernels::AdamwArrays types;  // without addresses
  std::vector<kernels::AdamwRun> runs;
  std::array<DigestRuns, 3> digests;  // exp_avg and exp_avg_sq in `moments`, master in `masters`
};
struct ReadyHostAdam {
  std::vector<kernels::AdamwRun> runs;
  std::array<DigestRuns, 3> digests;
};
struct ReadyCast {
  BufferId from, to;
  kernels::Type from_type = kernels::Type::fp32;
  kernels::Type to_type = kernels::Type::bf16;
  std::vector<kernels::CastRun> runs;
};
struct ReadyNorm {
  BufferId grads, norm;
  kernels::Type type = kernels::Type::fp32;
  std::vector<kernels::Run> runs;
};
struct ReadyClip : ReadyNorm {};

using Ready = std::variant<Nothing, Copy, ReadyAdam, ReadyHostAdam, ReadyCast, ReadyNorm, ReadyClip, ZeroGrads,
                           BucketCollective, NormCollective, Stand, HostWork>;

/// By op id. `plan` is the program's.
std::vector<Ready> ready_actions(const Program& program);

/// Launches, copies or calls that the action enqueues, events apart; stand-ins count their own (0 here).
std::uint32_t commands_of(const Ready& action);

/// Owned elements -> padded elements.
class PaddedPlaces {
 public:
  explicit PaddedPlaces(const Plan& plan);
  /// Calls each(first owned, first padded, numel) for the pieces of `range`, ascending.
  template <class Each>
  void pieces(ElementRange range, Each&& each) const {
    for (std::size_t i = first_in(range.begin); i < shards_.size() && shards_[i].begin < range.end; ++i) {
      const std::int64_t begin = range.begin > shards_[i].begin ? range.begin : shards_[i].begin;
      const std::int64_t end = range.end < shards_[i].end ? range.end : shards_[i].end;
      if (begin < end) each(begin, shards_[i].padded + (begin - shards_[i].begin), end - begin);
    }
  }
  std::int64_t owned() const { return shards_.empty() ? 0 : shards_.back().end; }

 private:
  struct Piece {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t padded = 0;
  };
  std::size_t first_in(std::int64_t owned) const;
  std::vector<Piece> shards_;
};

/// Runs of `elements` that lie one after another from `at` on.
void append_runs(std::vector<kernels::Run>& to, const PaddedPlaces& places, ElementRange elements, Bytes at,
                 std::int64_t element_bytes);

}  // namespace ebb::replay
