// SlotQuantizer: pipelined's second pass over gathered FP8 weights. In the first, while masters are in their slots,
// their largest values are found, all into one buffer; then one maximum over all ranks; then the masters come in once
// more, through slots of their own, and leave rows. Nothing goes out: they have not changed. So all scales are known
// before the first row is written, whatever the slots. Internal to lowering (lower_pipelined.cpp, lower_init.cpp,
// lower_load.cpp).
#pragma once

#include <vector>

#include "planner/owned_runs.hpp"
#include "planner/quantize_calls.hpp"

namespace ebb {

class SlotQuantizer {
 public:
  /// Does nothing where the recipe does not quantise explicitly.
  SlotQuantizer(PlanBuilder& plan, const RankModel& rank, Numel slot_numel, int slots, Phase phase);

  /// Largest values of the masters of quantised chunk `k`, which are on the device after `ready`. The last op.
  OpId measure(std::uint32_t k, OpId ready);
  /// The same of all of them, brought in from the host.
  void measure_all();
  /// The maximum over ranks, then the second pass.
  void quantize();

 private:
  struct Slot {
    BufferId buffer;
    OpId free;
  };
  struct Call {
    QuantizeCall call;
    LargestBuffer largest;
  };
  Call& call_of(const OwnedRun& chunk);
  OpId kernel(Work work, std::uint32_t k, std::int64_t bytes, std::initializer_list<OpId> deps);
  OpId copy_in(std::uint32_t k, const Slot& slot);
  std::vector<Slot> make_slots(const char* name);
  template <class Visit>
  void for_each_in_slot(const char* name, Visit visit);

  PlanBuilder& plan_;
  const RankModel& rank_;
  Phase phase_;
  Numel slot_numel_;
  std::size_t slots_;
  std::vector<OwnedRun> chunks_;
  std::vector<Call> calls_;
};

}  // namespace ebb
