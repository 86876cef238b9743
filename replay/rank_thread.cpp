#include "replay/rank_thread.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "models/errors.hpp"
#include "replay/state_init.hpp"
#include "replay/step_walk.hpp"

namespace ebb::replay {

namespace {

/// Operands only where some stand-in wants products.
std::int64_t gemm_size(const ExecuteOptions& options, const std::vector<Ready>& actions) {
  const bool stands = std::any_of(actions.begin(), actions.end(),
                                  [](const Ready& action) { return std::holds_alternative<Stand>(action); });
  return options.compute && stands ? kLargestGemm : 0;
}

std::vector<int> cpus_for_adam(const std::vector<Ready>& actions, const RankPlace& place) {
  const bool steps = std::any_of(actions.begin(), actions.end(),
                                 [](const Ready& action) { return std::holds_alternative<ReadyHostAdam>(action); });
  if (!steps) return {};
  return share_of_cpus(place.node, place.index, place.sharers);
}

/// One rank's part of a run; members are made in the order in which run_rank()'s comment says they may fail.
class Rank {
 public:
  Rank(const Program& program, const RankPlace& place, RunShared& shared)
      : program_(program),
        shared_(shared),
        options_(shared.options),
        actions_(ready_actions(program)),
        issue_(issue_plan(*program.plan)),
        store_({.pinned = program.pinned, .pageable = program.pageable, .device = place.device}),
        memory_(program, {.before_driver_call = [this] { before_driver_call(); }}),
        instruments_(instrument_needs(program, actions_, gemm_size(options_, actions_))),
        walk_(program, options_, issue_, memory_),
        pool_(cpus_for_adam(actions_, place)) {
    if (gemm_size(options_, actions_) > 0)
      stand_ins_ = StandIns(program_, actions_, {memory_.at(program_.params), memory_.at(program_.grads)}, instruments_,
                            walk_.compute());
    init_state(program_, memory_, store_, options_.training.seed, walk_.compute());
  }

  RankRecord run() {
    shared_.meet();
    comms_.emplace(std::array{&program_}, shared_.ids, shared_.comms);
    Issuer issuer({program_, options_, actions_, memory_, store_, instruments_, stand_ins_, *comms_, pool_});
    if (options_.graph) use_graph();
    ahead_ = walk_.ahead(actions_, stand_ins_);
    std::uint64_t seed = options_.training.seed;
    for (int step = 1; step <= options_.warmups + options_.repeats; ++step) {
      this_step(issuer, step, seed);
      if (options_.training.digests) seed = next_seed(seed, record_.numbers.steps.back().digest);
    }
    record_.numbers.final_state = final_digest(program_, memory_, store_, walk_.compute()).all;
    record_.numbers.peak_live = memory_.peak_live();
    conclude();
    // Of several ranks each measures alone: together they would measure the host, not the link.
    if (options_.link) shared_.in_turn([&] { record_.link = measure_link(program_, store_); });
    shared_.meet();  // nobody takes communicators down while others still use them
    return std::move(record_);
  }

 private:
  void before_driver_call() {
    if (step_ == 0) return;
    if (timed() && !shared_.gate.is_open(step_)) driver_calls_in_gate_ = true;
    shared_.gate.open(step_);
  }

  bool timed() const { return step_ > options_.warmups; }
  // Clocks go on changing for seconds, so timed steps teach the next ones too. Not the first: kernels are loaded in it.
  bool learns() const { return step_ > 1 && gemm_size(options_, actions_) > 0; }

  // The first step is never held: kernels are loaded and communicators connect in it, which waits for the device.
  void this_step(Issuer& issuer, int step, std::uint64_t seed) {
    const bool held = step > 1 && options_.gate;
    step_ = step;
    issuer.begin_step({static_cast<std::uint32_t>(step), seed, kernels::adamw_step(options_.training.adam, step)});
    walk_.begin_step(timed() || learns());
    instruments_.begin_step(walk_.compute());
    walk_.finish();
    if (held) walk_.prepare_graph(issuer);
    shared_.meet();
    const auto ops = static_cast<std::uint32_t>(actions_.size());
    const std::uint32_t ahead = held ? ahead_ : 0;
    walk_.start(held ? &shared_.gate : nullptr, step);
    walk_.enqueue(issuer, 0, ahead);
    shared_.meet([&] { shared_.gate.open(step); });
    walk_.enqueue(issuer, ahead, ops);
    walk_.finish();
    comms_->check();
    if (shared_.gate.timed_out())
      throw CudaError("the host did not come to open the start gate: the device waited in vain");
    end_step(issuer);
  }

  void use_graph() {
    const GraphStretch stretch = graph_stretch(*program_.plan);
    if (!stretch.empty()) return walk_.use_graph(stretch);
    record_.remarks.push_back(
        fmt::format("rank {}: no CUDA graph under this policy: {}", program_.plan->rank, stretch.why_not));
  }

  void end_step(const Issuer& issuer) {
    memory_.step_ended();
    memory_.sample_driver();
    instruments_.fetch(walk_.compute());
    walk_.finish();
    StepNumbers numbers = instruments_.fetched();
    numbers.digest += issuer.host_digest();
    record_.numbers.steps.push_back(numbers);
    if (!timed() && !learns()) return;
    Timeline times = walk_.clock().read(*program_.plan, issue_, shared_.gate.opened_at());
    if (learns()) stand_ins_.learn(times);
    if (timed()) record_.repeats.push_back(std::move(times));
  }

  void conclude() {
    MemoryFigures& memory = record_.memory;
    memory.torch_allocated_peak = memory_.torch_allocated_peak();
    memory.torch_reserved_peak = memory_.torch_reserved_peak();
    memory.driver_peak = memory_.driver_peak();
    memory.instruments = instruments_.bytes();
    memory.live_by_phase = walk_.live().by_phase();
    memory.pinned = store_.pinned_bytes();
    memory.pageable = store_.pageable_bytes();
    const std::int64_t rank = program_.plan->rank;
    for (const std::string& remark : store_.remarks())
      record_.remarks.push_back(fmt::format("rank {}: {}", rank, remark));
    if (!stand_ins_.remark().empty()) record_.remarks.push_back(fmt::format("rank {}: {}", rank, stand_ins_.remark()));
    if (driver_calls_in_gate_) {
      record_.remarks.push_back(
          fmt::format("rank {}: a timed step had to ask the driver for memory before its start", rank));
    }
  }

  const Program& program_;
  RunShared& shared_;
  const ExecuteOptions& options_;
  std::vector<Ready> actions_;
  IssuePlan issue_;
  HostStore store_;
  DeviceMemory memory_;
  Instruments instruments_;
  StepWalk walk_;
  HostPool pool_;
  StandIns stand_ins_;
  std::optional<RankComms> comms_;
  RankRecord record_;
  std::uint32_t ahead_ = 0;
  int step_ = 0;
  bool driver_calls_in_gate_ = false;
};

}  // namespace

void RunShared::stop(std::exception_ptr error) {
  barrier.break_with(std::move(error));
  gate.open(options.warmups + options.repeats);
  comms.abort_all();
}

RankRecord run_rank(const Program& program, const RankPlace& place, RunShared& shared) {
  set_device(place.device);
  Rank rank(program, place, shared);
  try {
    return rank.run();
  } catch (const Stopped&) {
    throw;
  } catch (...) {
    shared.stop(std::current_exception());  // before memory is freed, which waits for the device
    throw;
  }
}

Bytes instruments_needed(const Program& program, const ExecuteOptions& options) {
  const std::vector<Ready> actions = ready_actions(program);
  return device_bytes(instrument_needs(program, actions, gemm_size(options, actions)));
}

}  // namespace ebb::replay
