// ReferenceRank: one rank's memory on the CPU, and what each op of its Program does to it. In which order ops run, and
// collectives, are the scheduler's (reference.cpp, reference_collectives.hpp).
//
// Storage. Every life of a buffer, from allocation to hand-back in program order, has memory of its own, as the host
// thread of a real run hands out addresses in program order: an op that runs too early or too late does not meet the
// buffer's next life. Storage is poison (bytes 0xff: NaN in every type) before and after its life, and an access then
// is counted as a stray. Buffers without a role have no bytes, only a life.
#pragma once

#include <cstddef>
#include <vector>

#include "models/errors.hpp"
#include "replay/kernel_type.hpp"
#include "replay/program.hpp"
#include "replay/reference.hpp"

namespace ebb::replay {

class ReferenceRank {
 public:
  /// `program` outlives it. State and parameters have their first values.
  ReferenceRank(const Program& program, const TrainingOptions& options);

  const Program& program() const { return *program_; }
  const Plan& plan() const { return *program_->plan; }
  const Action& action(std::uint32_t op) const { return actions_[op].action; }

  void begin_step();
  /// Whatever the op does but a collective's exchange.
  void run(std::uint32_t op);
  /// After run() or the exchange: storage that waited for this op is handed back.
  void end(std::uint32_t op);
  void end_step();

  /// Bytes of a buffer as an action() names it: buffers there are storages.
  std::byte* data(BufferId storage) { return storages_[storage.index].data.data(); }
  /// Where a piece of state is between steps.
  std::byte* state(const StatePlace& place);
  RankNumbers finish();

 private:
  struct Storage {
    BufferId buffer;
    bool alive = false;
    bool strayed = false;  // something touched it while it was not alive
    std::vector<std::byte> data;
  };
  /// An op's action with buffers replaced by storages, and all that it uses.
  struct Bound {
    Action action;
    std::vector<std::uint32_t> uses;
    std::uint32_t storage = BufferId::none().index;  // allocate, release
  };
  struct Pending {
    std::uint32_t after = 0;
    std::uint32_t storage = 0;
  };

  void bind();
  void first_values();
  void hand_back(Storage& storage);
  void count(Bytes change);
  void digest(Dtype type, const std::byte* base, StateBits state, std::int64_t element, Bytes at, Numel numel);

  void operate(const Nothing&) {}
  void operate(const HostWork&) {}
  void operate(const Copy& copy);
  void operate(const DeviceAdam& adam);
  void operate(const HostAdam& adam);
  void operate(const Cast& cast);
  void operate(const Norm& norm);
  void operate(const Clip& clip);
  void operate(const ZeroGrads& zero);
  void operate(const BucketCollective&) {}
  void operate(const NormCollective&) {}
  void operate(const Stand& stand);
  template <class LifeAction>
  void operate(const LifeAction&) {
    EBB_ASSERT(!"an action of a step");
  }

  const Program* program_;
  TrainingOptions options_;
  std::vector<Bound> actions_;
  std::vector<Storage> storages_;
  std::vector<std::uint32_t> first_life_, last_life_;  // by buffer
  std::vector<std::byte> pinned_, pageable_;
  std::vector<bool> ended_;
  std::vector<Pending> pending_;
  std::vector<double> losses_;  // of the step, by forward op
  StepNumbers now_;
  std::uint64_t seed_ = 0;
  Bytes live_{0};
  RankNumbers numbers_;
};

}  // namespace ebb::replay
