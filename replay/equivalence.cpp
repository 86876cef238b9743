#include "replay/equivalence.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/errors.hpp"

namespace ebb::replay {

bool Equivalence::equal() const {
  return std::all_of(orders.begin(), orders.end(), [](const OrderResult& order) { return order.difference.empty(); });
}

bool Equivalence::lower() const {
  return std::all_of(peaks.begin(), peaks.end(), [](const PeakResult& peak) { return peak.lower(); });
}

void check_comparable(std::span<const Program> resident, std::span<const Program> policy) {
  const auto differ = [](const std::string& what, const std::string& cure) {
    throw InputError({}, "the plans cannot be compared: " + what, cure);
  };
  for (const Program& program : resident)
    if (program.plan->candidate.policy != Policy::resident)
      differ(fmt::format("the first is of {}, not of resident", name_of(program.plan->candidate.policy)),
             "name resident's plan first");
  if (resident.size() != policy.size()) differ("they have different numbers of ranks", "write both for one job");
  for (std::size_t r = 0; r < resident.size(); ++r) {
    const Plan& a = *resident[r].plan;
    const Plan& b = *policy[r].plan;
    if (a.rank != b.rank || a.shards != b.shards || a.buckets != b.buckets)
      differ("their ranks own other elements",
             "write both for one job; of a job on several hosts the slowest is written, which may be another one under "
             "another policy");
    for (const StateBits state : {kExpAvg, kExpAvgSq, kMaster, kGrads, kParams}) {
      if (bytes_per_element(a.precision, state) == bytes_per_element(b.precision, state) &&
          (state != kParams || a.precision.params == b.precision.params))
        continue;
      const bool on_host = (a.candidate.policy == Policy::cpu_adam) != (b.candidate.policy == Policy::cpu_adam);
      differ("they keep state in different types",
             on_host
                 ? "cpu-adam steps in fp32 whatever the job says: compare it for a job with fp32 moments and masters"
                 : "write both for one job");
    }
  }
}

std::string difference(std::span<const RankNumbers> resident, std::span<const RankNumbers> policy,
                       std::span<const Program> programs) {
  for (std::size_t r = 0; r < resident.size(); ++r) {
    const RankNumbers& a = resident[r];
    const RankNumbers& b = policy[r];
    const auto where = [&](std::size_t step) {
      return fmt::format("rank {}, step {}: ", programs[r].plan->rank, step + 1);
    };
    if (b.strays > 0)
      return fmt::format("rank {}: {} accesses to memory that was not allocated then", programs[r].plan->rank,
                         b.strays);
    for (std::size_t t = 0; t < std::min(a.steps.size(), b.steps.size()); ++t) {
      const StepNumbers& x = a.steps[t];
      const StepNumbers& y = b.steps[t];
      if (!(x.loss == y.loss)) return where(t) + fmt::format("loss {} instead of {}", y.loss, x.loss);
      if (!(x.sum_of_squares == y.sum_of_squares))
        return where(t) + fmt::format("squared gradient norm {} instead of {}", y.sum_of_squares, x.sum_of_squares);
      if (x.digest != y.digest)
        return where(t) + fmt::format("state digest {:016x} instead of {:016x}", y.digest, x.digest);
    }
    if (a.steps.size() != b.steps.size()) return fmt::format("{} steps instead of {}", b.steps.size(), a.steps.size());
    if (a.final_state != b.final_state)
      return fmt::format("rank {}: final state {:016x} instead of {:016x}", programs[r].plan->rank, b.final_state,
                         a.final_state);
  }
  return "";
}

namespace {

/// Of all ranks the one where `policy` saves least.
template <class BytesOf>
PeakResult peak_of(const std::string& what, std::size_t ranks, BytesOf bytes_of) {
  PeakResult least{what, {0}, {0}};
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto [resident, policy] = bytes_of(r);
    if (r == 0 || resident - policy < least.resident - least.policy) least = {what, resident, policy};
  }
  return least;
}

}  // namespace

Equivalence compare_on_cpu(std::span<const Program> resident, std::span<const Program> policy,
                           const TrainingOptions& training, int steps) {
  check_comparable(resident, policy);
  Equivalence result;
  result.policy = name_of(policy.front().plan->candidate.policy);
  result.resident = reference(resident, {.training = training, .steps = steps});
  const std::vector<ReferenceOptions> orders = all_orders(policy.size(), training, steps);
  const std::vector<std::vector<RankNumbers>> runs = references(policy, orders);
  for (std::size_t i = 0; i < orders.size(); ++i) {
    const ReferenceOptions& options = orders[i];
    const std::vector<RankNumbers>& numbers = runs[i];
    const std::string found = difference(result.resident, numbers, policy);
    if (!options.held_back) {
      result.orders.push_back({"program order", found});
      result.peaks.push_back(peak_of("live", numbers.size(), [&](std::size_t r) {
        return std::pair(result.resident[r].peak_live, numbers[r].peak_live);
      }));
      continue;
    }
    // One line a stream: on whichever rank it is held back most.
    if (options.most_on == 0) result.orders.push_back({fmt::format("{} held back", name_of(*options.held_back)), ""});
    if (result.orders.back().difference.empty()) result.orders.back().difference = found;
  }
  return result;
}

namespace {

bool uses(std::span<const Program> programs, StreamKind kind) {
  return std::any_of(programs.begin(), programs.end(), [&](const Program& program) {
    return std::any_of(program.plan->ops.begin(), program.plan->ops.end(), [&](const Op& op) {
      const bool acts = op.kind != OpKind::allocate && op.kind != OpKind::release;
      return acts && program.plan->streams[op.stream.index].kind == kind;
    });
  });
}

}  // namespace

Equivalence compare_on_gpu(std::span<const Program> resident, std::span<const Program> policy,
                           const TrainingOptions& training, int steps, const std::vector<int>& devices) {
  check_comparable(resident, policy);
  ExecuteOptions options;
  options.training = training;
  options.training.digests = true;
  options.warmups = steps > 1 ? 1 : 0;
  options.repeats = steps - options.warmups;
  options.devices = devices;
  options.compute = false;
  options.framework_time = false;
  options.link = false;
  options.poison = true;
  const RunResult good = execute(resident, options);
  const RunResult other = execute(policy, options);
  const auto numbers_of = [](const RunResult& run) {
    std::vector<RankNumbers> numbers;
    for (const RankRun& rank : run.ranks) numbers.push_back(rank.numbers);
    return numbers;
  };
  Equivalence result;
  result.policy = name_of(policy.front().plan->candidate.policy);
  result.on_gpu = true;
  result.resident = numbers_of(good);
  result.orders.push_back({"on the GPU", difference(result.resident, numbers_of(other), policy)});
  // Hardware takes a harmless order as a rule; with one stream slowed down the others run as far ahead as they may.
  for (const StreamKind kind : {StreamKind::compute, StreamKind::h2d, StreamKind::d2h, StreamKind::comm}) {
    if (!uses(policy, kind)) continue;
    options.slow = kind;
    result.orders.push_back({fmt::format("{} slowed", name_of(kind)),
                             difference(result.resident, numbers_of(execute(policy, options)), policy)});
  }
  const auto memory = [&](std::size_t r) {
    return std::pair<const MemoryFigures&, const MemoryFigures&>(good.ranks[r].timeline.memory,
                                                                 other.ranks[r].timeline.memory);
  };
  result.peaks.push_back(peak_of("live", good.ranks.size(), [&](std::size_t r) {
    return std::pair(memory(r).first.live_peak, memory(r).second.live_peak);
  }));
  const bool torch = std::all_of(good.ranks.begin(), good.ranks.end(), [](const RankRun& rank) {
    return rank.timeline.memory.torch_allocated_peak.has_value();
  });
  if (torch)
    result.peaks.push_back(peak_of("allocated, as torch counts", good.ranks.size(), [&](std::size_t r) {
      return std::pair(*memory(r).first.torch_allocated_peak,
                       memory(r).second.torch_allocated_peak.value_or(Bytes{INT64_MAX}));
    }));
  return result;
}

}  // namespace ebb::replay
