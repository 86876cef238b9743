// execute_life(): a life on real GPUs, one host thread a rank (rank_life.hpp).
#include <algorithm>
#include <filesystem>
#include <system_error>

#include "models/errors.hpp"
#include "replay/device_memory.hpp"
#include "replay/life_exchange.hpp"
#include "replay/life_sequence.hpp"
#include "replay/rank_life.hpp"
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

/// Over all parts. Other processes of the host pin beside this one.
Needs needs_of(const OwnPart& own, std::span<const LifeRank> all, const LifeScript& script,
               const ExecuteOptions& options) {
  Needs needs;
  needs.keep_free = options.keep_free;
  Bytes pinned{0};
  Bytes pageable{0};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::vector<const Program*> programs = programs_of(all[i]);
    RankNeeds need{.rank = programs[0]->plan->rank};
    for (const Program* program : programs) {
      need.pinned = std::max(need.pinned, program->pinned);
      need.pageable = std::max(need.pageable, program->pageable);
    }
    if (i >= own.first && i < own.first + own.devices.size()) {
      need.device = own.devices[i - own.first];
      need.buffers = buffers_needed(all[i], script);
      need.instruments = instruments_needed(all[i], options);
      needs.ranks.push_back(need);
    } else {
      pinned += need.pinned;
      pageable += need.pageable;
    }
  }
  needs.ranks[0].pinned += pinned;
  needs.ranks[0].pageable += pageable;
  return needs;
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
  OwnPart part = own_part(ranks.size(), options);
  const Needs needs = needs_of(part, ranks, script, options);
  const Machine machine = read_machine(part.devices);
  check_devices(needs, machine, compiled_for());
  run.remarks = check_memory(needs, machine);
  note_other_users(part, machine, run.remarks);

  const std::span<const LifeRank> own = ranks.subspan(part.first, part.devices.size());
  std::vector<const Program*> programs;
  std::vector<std::int64_t> own_ranks;
  for (const LifeRank& rank : own) {
    const std::vector<const Program*> all = programs_of(rank);
    programs.insert(programs.end(), all.begin(), all.end());
    own_ranks.push_back(all[0]->plan->rank);
  }
  const std::vector<std::int64_t> present = ranks_present(part, own_ranks);
  LifeShared shared(options, script, own);
  shared.processes = part.processes ? &*part.processes : nullptr;
  shared.job_ranks = static_cast<std::int64_t>(present.size());
  shared.ids = make_ids(part, programs, own_ranks, present, false, run.remarks);
  run.provenance = provenance(machine, part.devices, !shared.ids.empty());

  const std::vector<RankPlace> places = places_of(part);
  std::vector<RankLifeRecord> records = run_lives(own, places, shared);
  for (RankLifeRecord& record : records) {
    run.remarks.insert(run.remarks.end(), record.remarks.begin(), record.remarks.end());
    run.ranks.push_back(std::move(record.numbers));
  }
  if (part.processes) {
    run.first_process = part.processes->rank() == 0;
    run.ranks = gather_lives(*part.processes, own_ranks[0], std::move(run.ranks[0]));
  }
  return run;
}

}  // namespace ebb::replay
