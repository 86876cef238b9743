#include "replay/life_shared.hpp"

#include "replay/life_exchange.hpp"
#include "replay/nccl.hpp"

namespace ebb::replay {

LifeShared::StepEnd LifeShared::end_step(std::size_t rank, StepEnd own) {
  steps_[rank] = own;
  meet([this] { sum_up(); });
  return all_;
}

void LifeShared::sum_up() {
  all_ = {0, steps_[0].skipped};
  bool agree = true;
  const auto add = [&](const StepEnd& end) {
    all_.digest += end.digest;
    agree = agree && end.skipped == all_.skipped;
  };
  for (const StepEnd& end : steps_) add(end);
  if (processes != nullptr) {
    const std::vector<ProcessStepEnd> ends = exchange_step_end(*processes, {all_.digest, all_.skipped, agree});
    all_.digest = 0;
    for (const ProcessStepEnd& end : ends) {
      add({end.digest, end.skipped});
      agree = agree && end.agree;
    }
  }
  if (!agree) throw NcclError("some ranks have finite gradients and others have not: their norm was not the same");
}

}  // namespace ebb::replay
