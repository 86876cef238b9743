// ReferenceRank: one rank's memory on the CPU, and what each op of its Program does to it. In which order ops run, and
// collectives, are the scheduler's (reference.cpp, reference_collectives.hpp).
//
// Storage. Every life of a buffer, from allocation to hand-back in program order, has memory of its own, as the host
// thread of a real run hands out addresses in program order: an op that runs too early or too late does not meet the
// buffer's next life. Storage is poison (bytes 0xff: NaN in every type) before and after its life, and an access then
// is counted as a stray. Buffers without a role have no bytes, only a life.
//
// A life. The rank takes one Program after another (adopt()): what one leaves alive is, by name, what the next begins
// with; the host store stays. In the middle of a step it can go on with the skip's program instead (go_on_with()),
// which is the same up to there.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "models/errors.hpp"
#include "replay/kernel_type.hpp"
#include "replay/life.hpp"
#include "replay/program.hpp"
#include "replay/reference.hpp"

namespace ebb::replay {

/// Where the pieces of a save go and those of a load come from.
struct CheckpointPieces {
  std::function<void(const CheckpointPiece&, const std::byte*)> store;
  std::function<void(const CheckpointPiece&, std::byte*)> fetch;
};

class ReferenceRank {
 public:
  /// Whether the program is the first of a life, where only parameters exist, and no quantised ones.
  enum class Begin { step, life };

  /// `program` outlives it. State and parameters have their first values.
  ReferenceRank(const Program& program, const TrainingOptions& options, Begin begin = Begin::step);

  const Program& program() const { return *program_; }
  const Plan& plan() const { return *program_->plan; }
  const Action& action(std::uint32_t op) const { return actions_[op].action; }

  /// Between parts: `next` begins with what is alive. Precondition: compile_life() made both.
  void adopt(const Program& next);
  /// Inside a step, when op Program::decision has ended: the ops behind it are those of `skip`.
  void go_on_with(const Program& skip);
  /// What the host sees there: the gradients are finite. Precondition: op `decision` waits for the norm's buffer.
  bool finite(std::uint32_t decision);
  /// Where the run stands: step numbers, seed and loss scale of the next step.
  void set_place(const TrainingPlace& place) { place_ = place; }
  const TrainingPlace& place() const { return place_; }
  CheckpointPieces checkpoint = {};  // used by the ops of saves and loads

  void begin_step();
  /// Whatever the op does but a collective's exchange.
  void run(std::uint32_t op);
  /// After run() or the exchange: storage that waited for this op is handed back.
  void end(std::uint32_t op);
  void end_step();
  /// The part is over; what it took and gave back. In a life after a training step `step` has its numbers.
  PartPeak end_part();
  StepNumbers numbers_of_step() const;
  std::int64_t strays() const { return numbers_.strays; }
  /// Copies that the host has left in flight at the end of a part that must leave none.
  void left_in_flight(std::int64_t copies) { numbers_.strays += copies; }

  /// Bytes of a buffer as an action() names it: buffers there are storages.
  std::byte* data(BufferId storage) { return storages_[storage.index].data.data(); }
  /// Where a piece of state is between steps; in a life: when the part has ended.
  std::byte* state(const StatePlace& place);
  RankNumbers finish();
  /// Digests of a life's end.
  struct FinalDigests {
    std::uint64_t state = 0;       // with parameters
    std::uint64_t parameters = 0;  // quantised ones as bytes, with scales
  };
  FinalDigests final_digests();

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
    std::vector<std::pair<std::uint32_t, std::uint32_t>> named;  // quantised parameters: buffer and storage
    bool columns_live = false;                                   // their column-wise copies are alive
    std::uint32_t storage = BufferId::none().index;              // allocate, release
  };
  struct Pending {
    std::uint32_t after = 0;
    std::uint32_t storage = 0;
  };

  /// Contents of buffers by name.
  using Contents = std::map<std::string, std::vector<std::byte>>;
  void bind(Contents left = {});
  void bind_from(std::uint32_t first);
  void bind(std::uint32_t op);
  std::uint32_t open(std::uint32_t buffer, std::vector<std::byte> data);
  std::uint32_t open(std::uint32_t buffer) { return open(buffer, poisoned(buffer)); }
  std::vector<std::byte> poisoned(std::uint32_t buffer);
  void first_values();
  void first_parameters();
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
  void operate(const Zero& zero);
  void operate(const HostMasters& masters);
  void operate(const Store& store);
  void operate(const Fetch& fetch);
  void operate(const LargestCollective&) {}
  void operate(const FindLargest& find);
  void operate(const Quantize& quantize);
  void operate(const Dequantize& dequantize);
  void operate(const MakeColumns& make);

  std::function<std::byte*(BufferId)> buffers();
  std::vector<float> values_of(const Stand& stand);
  void inject();
  void bind_quantized(std::uint32_t op);
  Bytes device_bytes(BufferId id) const;
  Dtype moment_type(StateBits state) const;

  const Program* program_;
  bool in_life_ = false;
  TrainingOptions options_;
  std::vector<Bound> actions_;
  std::vector<Storage> storages_;
  std::map<std::size_t, std::vector<std::vector<std::byte>>> spare_;  // by size: what is poison from end to end
  std::vector<std::uint32_t> first_life_, last_life_;                 // by buffer
  std::vector<bool> lived_;                      // by buffer: it has been alive up to the op that is bound
  std::vector<bool> lives_;                      // ... and is
  std::vector<std::uint32_t> life_at_decision_;  // last_life_ and lived_ there
  std::vector<bool> lived_at_decision_, lives_at_decision_;
  const Program* began_with_ = nullptr;  // the step whose skip is run
  std::vector<Bytes> changes_;           // by op: device memory that it took
  std::vector<std::byte> pinned_, pageable_;
  std::vector<bool> ended_;
  std::vector<Pending> pending_;
  std::vector<double> losses_;  // of the step, by forward op
  StepNumbers now_;
  TrainingPlace place_;
  std::uint32_t last_backward_ = OpId::none().index;
  std::uint32_t running_ = 0;
  Bytes live_{0};
  RankNumbers numbers_;
};

}  // namespace ebb::replay
