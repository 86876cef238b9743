// Lives with one dependency dropped from one part. What planner/verify calls a hazard there, the reference must show in
// some order (other numbers, poison, a stray access, ranks that wait for ever), but for an order of issue on the host;
// what verify calls harmless must change nothing in any order, or leave
// copies in flight when the part ends. Checkpoints are in memory: what a part does is the same.
#include <map>

#include "models/errors.hpp"
#include "planner/verify.hpp"
#include "tests/catch.hpp"
#include "tests/replay/life_cases.hpp"
#include "tests/replay/memory_checkpoint.hpp"
#include "tests/replay/mutants.hpp"

using namespace ebb;
using namespace ebb::replay;
using namespace ebb::test;

namespace {

/// What a short life with every part shows: numbers and digests after every part, and what it saved.
struct Shown {
  std::vector<std::uint64_t> digests;
  std::vector<StepNumbers> steps;
  MemoryCheckpoint saved, again;
  std::int64_t strays = 0;
};

bool same(const Shown& a, const Shown& b) {
  if (a.digests != b.digests || a.steps.size() != b.steps.size() || a.strays != b.strays) return false;
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    if (a.steps[i].skipped != b.steps[i].skipped || a.steps[i].digest != b.steps[i].digest) return false;
    const bool same_loss = a.steps[i].loss == b.steps[i].loss;
    if (!same_loss) return false;
    if (!a.steps[i].skipped && a.steps[i].sum_of_squares != b.steps[i].sum_of_squares) return false;
  }
  return a.saved == b.saved && a.again == b.again;
}

class ShortLife {
 public:
  ShortLife(const std::vector<LifeRank>& ranks, const ReferenceOptions& order)
      : options_(options()), run_(ranks, options_, order.held_back, order.most_on), place_(first_place(options_)) {
    set_place();
  }

  /// first skip, first step, step, save, skip, step, reload, step, save; then a life that begins with that load.
  Shown all() {
    part(LifePart::init, {});
    step(LifePart::first_step, LifePart::first_skip);
    step(LifePart::first_step, LifePart::first_skip);
    step(LifePart::step, LifePart::skip);
    part(LifePart::save, &shown_.saved);
    step(LifePart::step, LifePart::skip);
    step(LifePart::step, LifePart::skip);
    part(LifePart::reload, &shown_.saved);
    step(LifePart::step, LifePart::skip);
    part(LifePart::save, &shown_.again);
    for (std::size_t r = 0; r < run_.size(); ++r) shown_.strays += run_.rank(r).strays();
    return shown_;
  }
  Shown resumed(LifePart load, MemoryCheckpoint& from) {
    part(LifePart::init, {});
    part(load, &from);
    const bool fresh = load == LifePart::load_params;
    step(fresh ? LifePart::first_step : LifePart::step, fresh ? LifePart::first_skip : LifePart::skip);
    for (std::size_t r = 0; r < run_.size(); ++r) shown_.strays += run_.rank(r).strays();
    return shown_;
  }

 private:
  static TrainingOptions options() {
    TrainingOptions options;
    const float infinity = std::numeric_limits<float>::infinity();
    options.injections = {{.step = 1, .rank = 0, .value = infinity}, {.step = 4, .rank = 0, .value = infinity}};
    return options;
  }
  void set_place() {
    for (std::size_t r = 0; r < run_.size(); ++r) run_.rank(r).set_place(place_);
  }
  void look() {
    for (std::size_t r = 0; r < run_.size(); ++r) {
      run_.rank(r).end_part();
      shown_.digests.push_back(run_.rank(r).final_digests().state);
    }
  }
  void part(LifePart part, MemoryCheckpoint* checkpoint) {
    for (std::size_t r = 0; r < run_.size() && checkpoint != nullptr; ++r)
      run_.rank(r).checkpoint = checkpoint->of(run_.rank(r).plan());
    run_.part(part);
    look();
  }
  void step(LifePart step, LifePart skip) {
    const bool skipped = run_.part(step, skip) == skip;
    std::uint64_t digest = 0;
    for (std::size_t r = 0; r < run_.size(); ++r) {
      shown_.steps.push_back(run_.rank(r).numbers_of_step());
      shown_.steps.back().skipped = skipped;
      digest += shown_.steps.back().digest;
    }
    look();
    place_ = after_step(options_, place_, skipped, digest);
    set_place();
  }

  TrainingOptions options_;
  ReferenceRun run_;
  TrainingPlace place_;
  Shown shown_;
};

/// In the orders of all of `orders`; nullopt where ranks wait for each other.
std::vector<std::optional<Shown>> lives(const std::vector<LifeRank>& ranks, LifePart mutated,
                                        MemoryCheckpoint& checkpoint, const std::vector<ReferenceOptions>& orders) {
  std::vector<std::optional<Shown>> shown;
  const bool resumes = mutated == LifePart::load || mutated == LifePart::load_params;
  for (const ReferenceOptions& order : orders) {
    try {
      ShortLife life(ranks, order);
      shown.push_back(resumes ? life.resumed(mutated, checkpoint) : life.all());
    } catch (const InputError&) {
      shown.push_back(std::nullopt);
    }
  }
  return shown;
}

/// Nothing behind the host's look at the norm is issued before it: which plan goes on is not known.
bool waits_for_decision(const Plan& plan, const Hazard& hazard) {
  const Op& first = plan.ops[hazard.first.index];
  return hazard.first.valid() && first.kind == OpKind::host_wait && first.buffer.valid() &&
         plan.buffers[first.buffer.index].role == Role::norm;
}

/// The dependency makes the host wait at the end of a part for what it began: verify looks at one plan and sees no
/// harm, but the next part may begin then.
bool is_drain(const Plan& plan, std::uint32_t drop) {
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i)
    if (plan.streams[plan.ops[i].stream.index].kind == StreamKind::host) last = i;
  const Op& op = plan.ops[last];
  return op.kind == OpKind::host_wait && op.deps_begin <= drop && drop < op.deps_begin + op.deps_count;
}

struct Count {
  int hazards = 0;
  int caught = 0;
  int harmless = 0;
  int drains = 0;
  int refused = 0;
  std::map<LifePart, int> caught_in;
};

/// Of the first rank's plans, or of that of one part.
void drop_each(const Job& job, const Candidate& candidate, Count& count, std::optional<LifePart> only = std::nullopt) {
  const std::vector<Plan> plans = host_life(job, candidate).plans;
  const std::vector<LifeRank> ranks = compile_ranks(plans);
  const std::vector<ReferenceOptions> orders = all_orders(ranks.size(), {}, 0);
  MemoryCheckpoint checkpoint = ShortLife(ranks, {}).all().saved;
  std::map<LifePart, Shown> good;
  for (std::size_t p = 0; p < plans.size() && plans[p].rank == plans[0].rank; ++p) {
    const LifePart part = plans[p].part;
    if (only && part != *only) continue;
    const bool resumes = part == LifePart::load || part == LifePart::load_params;
    ShortLife life(ranks, {});
    good[part] = resumes ? life.resumed(part, checkpoint) : life.all();
    REQUIRE(good[part].strays == 0);
    for (std::uint32_t drop = 0; drop < plans[p].deps.size(); ++drop) {
      INFO(ranks.size() << " ranks, " << text_of(candidate) << ", " << name_of(part) << ", dependency " << drop);
      std::vector<Plan> mutants = plans;
      mutants[p] = without(plans[p], drop);
      const std::vector<Hazard> hazards = verify(mutants[p]);
      std::vector<LifeRank> changed;
      try {
        changed = compile_ranks(mutants);
      } catch (const InputError&) {
        ++count.refused;
        continue;  // a step whose skip begins differently, scales that do not wait for all largest values
      }
      bool shown = false;
      for (const auto& numbers : lives(changed, part, checkpoint, orders))
        shown = shown || !numbers || !same(*numbers, good[part]);
      if (hazards.empty()) {
        if (shown) CHECK(is_drain(plans[p], drop));
        ++(shown ? count.drains : count.harmless);
        continue;
      }
      ++count.hazards;
      count.caught += shown ? 1 : 0;
      count.caught_in[part] += shown ? 1 : 0;
      if (shown) continue;
      for (const Hazard& hazard : hazards) {
        INFO(hazard.text);
        CHECK((hazard.kind == HazardKind::issued_early || waits_for_decision(plans[p], hazard)));
      }
    }
  }
}

}  // namespace

TEST_CASE("A dependency dropped from any part of a life that verify reports shows itself in some order") {
  Count count;
  for (const int gpus : {1, 2}) {
    const Job job = smallest_life_job(gpus);
    for (const Candidate& candidate : life_candidates(owned_by_first(job))) drop_each(job, candidate, count);
  }
  std::string parts;
  for (const auto& [part, caught] : count.caught_in)
    parts += std::string(" ") + std::string(name_of(part)) + " " + std::to_string(caught);
  WARN(count.caught << " of " << count.hazards << " hazardous mutants caught (" << parts << " ), " << count.harmless
                    << " harmless ones unchanged, " << count.drains << " that leave copies in flight at a part's end");
  CHECK(count.hazards > 100);
  CHECK(count.caught > 4 * (count.hazards - count.caught));
  for (const LifePart part : {LifePart::save, LifePart::load, LifePart::reload}) CHECK(count.caught_in[part] > 0);
}

TEST_CASE("A dependency dropped from an FP8 step is refused, reported by verify and shown, or changes nothing") {
  for (const auto& [gpus, policy] : {std::pair(2, Policy::chunked), std::pair(1, Policy::pipelined)}) {
    Count count;
    Job job = smallest_life_job(gpus);
    job.precision.fp8 = Fp8Recipe::blockwise;
    job.precision.fp8_param_gather = true;
    const std::int64_t owned = owned_by_first(job);
    Candidate candidate{.policy = policy, .chunk_numel = {owned / 3}};
    if (policy == Policy::pipelined) candidate.slots = 2;
    drop_each(job, candidate, count, LifePart::step);
    INFO(name_of(policy) << ": " << count.refused << " refused, " << count.caught << " of " << count.hazards
                         << " hazardous ones caught, " << count.harmless << " unchanged");
    CHECK(count.refused > 0);
    CHECK(count.caught > 10);
  }
}
