// Evaluator: what candidates of one job cost, by lowering and simulating them.
//
// What is exact and what is chosen. Layout, shards, packings and host bytes are computed for every distinct rank
// (ranks.hpp). A candidate is simulated on a few hosts (hosts.hpp), each with all its ranks at once: those that carry
// the slowest rank and the fullest ranks of each stage by estimate (rank_estimate.hpp). The answer is the maximum over
// the ranks of these hosts.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "models/timeline.hpp"
#include "planner/bounds.hpp"
#include "planner/host_demand.hpp"
#include "planner/hosts.hpp"
#include "planner/ranks.hpp"
#include "planner/reserved.hpp"
#include "planner/search.hpp"
#include "sim/simulator.hpp"

namespace ebb {

/// One rank of a simulated host.
struct SlowestRank {
  std::size_t rank = 0;  // into Evaluator::ranks()
  Plan plan;
  Timeline timeline;
  StepSummary summary;
  std::vector<Seconds> exposed;  // by phase of `summary` (life_time.hpp)
};

class Evaluator {
 public:
  /// `job` outlives the evaluator. Precondition: check(job) passed.
  explicit Evaluator(const Job& job);

  const Job& job() const { return *job_; }

  /// Shards of the ranks that decide resident's step and peak: their packings are the ones worth trying.
  std::vector<std::vector<Shard>> deciding_shards() const;

  /// Never above what answer() gives.
  Bound bound(const Candidate& candidate) const;
  /// Not above the bound of any candidate with the same policy and fraction.
  Bound family_bound(const Candidate& candidate) const;
  /// The same from the simulated hosts of the deciding ranks: closer, and dearer. Where all hosts are alike it
  /// simulates what answer() does.
  Bound probe(const Candidate& candidate);
  bool probe_is_cheaper() const { return hosts_.hosts().size() > 1; }

  /// Everything but what needs the other answers: `deployable` and `reason` stay as they are.
  Answer answer(const Candidate& candidate);
  /// The same over every distinct host: what answer() is tested against.
  Answer answer_of_all_hosts(const Candidate& candidate);

  /// Whether torch's allocator, replayed (reserved.hpp), gets through within the device budget on every rank that may
  /// decide. Milliseconds a rank.
  bool runs_within_budget(const Answer& answer) const;
  /// The same; also fills in device_reserved_likely, and where the budget is too small takes back fits_device and looks
  /// for the least that would do.
  void replay_allocator(Answer& answer) const;
  /// Fills in device_resume: what replay_allocator() would make of device_reserved if the job began with a load of
  /// optimizer state, from the same bounds and the same replay. After replay_allocator().
  void replay_resume(Answer& answer) const;

  /// The plan of the rank that answer() finds slowest, and what the simulation says of it.
  SlowestRank slowest(const Candidate& candidate);
  /// The same of a rank by its number in ranks().
  SlowestRank on_rank(std::size_t rank, const Candidate& candidate);

  const std::vector<RankModel>& ranks() const { return ranks_.ranks(); }
  const HostSet& hosts() const { return hosts_; }

  /// What must fit into a host's memory.
  const HostDemand& host(const Candidate& candidate);
  bool fits_host(const Candidate& candidate);

 private:
  std::vector<std::size_t> ranks_to_decide(const Candidate& candidate) const;
  std::vector<std::size_t> hosts_of(std::span<const std::size_t> ranks) const;
  Answer answer_on(const Candidate& candidate, std::span<const std::size_t> hosts);
  std::vector<std::size_t> reserving(const std::map<std::size_t, Bytes>& bounds) const;
  /// Of the ranks that may decide: what a life that begins so needs of the device.
  struct Replayed {
    bool within_budget = true;
    Bytes needed{0};  // of the allocator
    Bytes likely{0};  // what it holds once steps repeat
    Bytes peak{0};    // allocated, in a later step
  };
  Replayed replay(const Answer& answer, Start start) const;
  std::optional<PredictedMemory> replayed(std::size_t rank, const Candidate& candidate, Start start) const;
  void add_host(Answer& answer);
  Bytes socket_memory() const;
  void simulate(std::size_t host, const Candidate& candidate);
  void find_deciding();

  const Job* job_;
  RankSet ranks_;
  HostSet hosts_;
  std::int64_t ranks_per_host_ = 1;
  std::vector<std::size_t> deciding_;  // ranks
  std::vector<RankBounds> bounds_;     // of deciding ranks
  double resident_step_ = 0;           // seconds
  std::map<Candidate, HostDemand> host_;
  // Within the budget, by rank: rows are replayed in threads of their own.
  mutable std::mutex replays_mutex_;
  mutable std::map<std::tuple<std::size_t, Candidate, Start>, std::optional<PredictedMemory>> replays_;
  // Reused from candidate to candidate; by class of the host simulated last.
  sim::Simulator simulator_;
  sim::HostRuns runs_;
  std::vector<Plan> plans_;
  std::vector<Timeline> timelines_;
  std::vector<StepSummary> summaries_;
  std::vector<MemoryEvent> scratch_;
};

}  // namespace ebb
