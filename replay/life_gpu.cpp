// execute_life(): a life on real GPUs, one host thread a rank (rank_life.hpp).
#include <algorithm>
#include <filesystem>
#include <system_error>

#include "models/errors.hpp"
#include "replay/device_memory.hpp"
#include "replay/life_exchange.hpp"
#include "replay/life_sequence.hpp"
#include "replay/rank_life.hpp"
#include "replay/ready_part.hpp"
#include "replay/run_setup.hpp"

namespace ebb::replay {

namespace {

Bytes buffers_needed(const LifeRank& rank, const LifeScript& script) {
  std::vector<const Plan*> plans;
  for (const Program* program : programs_of(rank)) plans.push_back(program->plan);
  std::vector<const Plan*> order;
  for (const LifePart part : parts_of(script, rank.programs))
    order.push_back(rank.programs[static_cast<std::size_t>(part)]->plan);
  return device_bytes_needed(plans, order);
}

/// Over all parts.
RunRanks ranks_of(std::span<const LifeRank> ranks, const LifeScript& script, const ExecuteOptions& options) {
  const auto rank_of = [ranks](std::size_t i) { return programs_of(ranks[i])[0]->plan->rank; };
  return {.count = ranks.size(),
          .rank = rank_of,
          .programs = [ranks](std::size_t i) { return programs_of(ranks[i]); },
          .needs =
              [=, &script, &options](std::size_t i, bool own) {
                RankNeeds need{.rank = rank_of(i)};
                for (const Program* program : programs_of(ranks[i])) {
                  need.pinned = std::max(need.pinned, program->pinned);
                  need.pageable = std::max(need.pageable, program->pageable);
                }
                if (!own) return need;
                need.buffers = buffers_needed(ranks[i], script);
                need.instruments = instruments_needed(ranks[i], options);
                return need;
              }};
}

/// A save that failed on one rank leaves what others had finished. Where other processes save too, the next save
/// removes it.
void remove_half_checkpoint(const LifeShared& shared) noexcept {
  if (shared.saving.empty() || shared.processes != nullptr) return;
  std::error_code ignored;
  std::filesystem::remove_all(shared.saving, ignored);
}

std::vector<RankLifeRecord> run_lives(std::span<const LifeRank> ranks, std::span<const RankPlace> places,
                                      LifeShared& shared) {
  try {
    return run_threads(ranks.size(), shared,
                       [&](std::size_t i) { return run_rank_life(ranks[i], i, places[i], shared); });
  } catch (...) {
    remove_half_checkpoint(shared);
    throw;
  }
}

}  // namespace

LifeRun execute_life(std::span<const LifeRank> ranks, const LifeScript& script, const ExecuteOptions& given) {
  if (ranks.empty()) throw InputError({}, "no rank to execute");
  ExecuteOptions options = given;
  options.training = script.training;
  options.graph = options.link = options.alone = false;
  LifeRun run;
  RunSetup setup = set_up(ranks_of(ranks, script, options), options);
  check_all_ranks(setup.present);
  run.remarks = std::move(setup.remarks);
  run.provenance = std::move(setup.provenance);
  const std::span<const LifeRank> own = ranks.subspan(setup.part.first, setup.part.devices.size());
  LifeShared shared(options, script, own);
  shared.processes = setup.processes();
  shared.job_ranks = static_cast<std::int64_t>(setup.present.size());
  shared.ids = std::move(setup.ids);
  std::vector<RankLifeRecord> records = run_lives(own, setup.places, shared);
  for (RankLifeRecord& record : records) {
    run.remarks.insert(run.remarks.end(), record.remarks.begin(), record.remarks.end());
    run.ranks.push_back(std::move(record.numbers));
  }
  if (Processes* const processes = setup.processes()) {
    run.first_process = processes->rank() == 0;
    run.ranks = gather_lives(*processes, programs_of(own[0])[0]->plan->rank, std::move(run.ranks[0]));
  }
  return run;
}

}  // namespace ebb::replay
