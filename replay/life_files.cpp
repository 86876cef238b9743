#include "replay/life_files.hpp"

#include <fmt/format.h>

#include <utility>

#include "models/errors.hpp"
#include "models/plan_json.hpp"
#include "models/text_file.hpp"
#include "replay/talk.hpp"

namespace ebb::replay {

namespace {

constexpr const char* kCure = "write one with ebb simulate JOB --policy P --life -o FILE";
/// Nine parts of eight ranks of a million ops each stay below it.
constexpr std::int64_t kMostLifeBytes = std::int64_t{16} << 30;

bool has(const LifeRank& rank, std::size_t part) { return rank.programs[part].has_value(); }

/// The ranks of one host follow each other.
void check_ranks(const LifeFile& file) {
  for (std::size_t i = 1; i < file.ranks.size(); ++i) {
    const std::int64_t before = step_of(file.ranks[i - 1]).rank;
    const std::int64_t rank = step_of(file.ranks[i]).rank;
    if (rank != before + 1)
      throw InputError({.file = file.name},
                       fmt::format("rank {} comes behind rank {}: the ranks of a host follow each other", rank, before),
                       kCure);
  }
}

void check_parts(const LifeFile& file) {
  for (const LifeRank& rank : file.ranks)
    for (std::size_t part = 0; part < kPartCount; ++part)
      if (has(rank, part) != has(file.ranks.front(), part))
        throw InputError({.file = file.name},
                         fmt::format("not every rank has a plan of the part {}", name_of(static_cast<LifePart>(part))),
                         kCure);
  for (const LifePart part : {LifePart::step, LifePart::init})
    if (!has(file.ranks.front(), static_cast<std::size_t>(part)))
      throw InputError({.file = file.name}, fmt::format("it has no plan of the part {}", name_of(part)), kCure);
}

}  // namespace

LifeFile life_of(std::vector<Plan> plans, const std::string& name) {
  LifeFile file;
  file.name = name;
  file.plans = std::make_unique<const std::vector<Plan>>(std::move(plans));
  std::vector<const Plan*> of_rank;
  for (std::size_t i = 0; i < file.plans->size(); ++i) {
    of_rank.push_back(&(*file.plans)[i]);
    if (i + 1 < file.plans->size() && (*file.plans)[i + 1].rank == (*file.plans)[i].rank) continue;
    file.ranks.push_back({compile_life(of_rank, name)});
    of_rank.clear();
  }
  check_parts(file);
  check_ranks(file);
  return file;
}

LifeFile read_life_file(const std::string& name, const std::string& shown) {
  const std::string& called = shown.empty() ? name : shown;
  const Activity activity(fmt::format("reading {}", called));
  return life_of(plans_from_json(read_text_file(name, kMostLifeBytes, kCure), called), called);
}

const Plan& plan_of(const LifeRank& rank, LifePart part) {
  const auto& program = rank.programs[static_cast<std::size_t>(part)];
  EBB_ASSERT(program.has_value());
  return *program->plan;
}

}  // namespace ebb::replay
