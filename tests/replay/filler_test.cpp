// Fillers: forward and backward cut into one op with consequences and ones without give the bits of whole ops, and
// fillers take the time that they were cut off and overwrite all of their activations.
#include <limits>
#include <variant>

#include "replay/reference.hpp"
#include "replay/stand_in.hpp"
#include "tests/catch.hpp"
#include "tests/replay/life_checks.hpp"

using namespace ebb;
using namespace ebb::replay;
using namespace ebb::test;

namespace {

enum class Where { before, behind, both };
constexpr Where kEverywhere[] = {Where::before, Where::behind, Where::both};

/// Writes a plan's ops again with some more between them.
class Rewriter {
 public:
  explicit Rewriter(const Plan& plan) : from_(plan), to_(plan) {
    to_.ops.clear();
    to_.deps.clear();
  }
  /// As it is, with other ids.
  void keep(const Op& op, bool with_deps = true) {
    place_.push_back(static_cast<std::uint32_t>(to_.ops.size()));
    add(op, with_deps ? from_.deps_of(op) : std::span<const OpId>{});
  }
  /// Of nothing but time; begins when `deps` of the old plan have ended.
  void filler(Op op, Ticks duration, std::span<const OpId> deps) {
    op.states = 0;
    op.range = {};
    op.duration = duration;
    add(op, deps);
  }
  Plan plan() { return std::move(to_); }

 private:
  void add(Op op, std::span<const OpId> deps) {
    op.deps_begin = static_cast<std::uint32_t>(to_.deps.size());
    op.deps_count = static_cast<std::uint32_t>(deps.size());
    for (const OpId dep : deps) to_.deps.push_back({place_[dep.index]});
    if (op.after.valid()) op.after = {place_[op.after.index]};
    to_.ops.push_back(op);
  }
  const Plan& from_;
  Plan to_;
  std::vector<std::uint32_t> place_;  // by old op
};

/// Every forward and backward op with a third of its time before it, behind it, or both. Who waited for the op waits
/// for the part with consequences.
Plan cut(const Plan& plan, Where where) {
  Rewriter cut(plan);
  for (const Op& op : plan.ops) {
    if (op.kind != OpKind::compute) {
      cut.keep(op);
      continue;
    }
    const Ticks third{op.duration.value / 3};
    const bool before = where != Where::behind;
    Op rest = op;
    rest.duration = {op.duration.value - third.value * (where == Where::both ? 2 : 1)};
    if (before) cut.filler(op, third, plan.deps_of(op));
    cut.keep(rest, !before);
    if (where != Where::before) cut.filler(op, third, {});
  }
  return cut.plan();
}

std::vector<Plan> cut(const std::vector<Plan>& plans, Where where) {
  std::vector<Plan> all;
  for (const Plan& plan : plans) all.push_back(cut(plan, where));
  return all;
}

Ticks compute_time(const Program& program) {
  Ticks sum{0};
  for (const Action& action : program.actions)
    if (const auto* stand = std::get_if<Stand>(&action)) sum += stand->duration;
  return sum;
}

/// Stand-ins with consequences: direction, range and number.
std::vector<std::tuple<bool, std::int64_t, std::int64_t, std::uint32_t>> consequences(const Program& program) {
  std::vector<std::tuple<bool, std::int64_t, std::int64_t, std::uint32_t>> all;
  for (const Action& action : program.actions) {
    const auto* stand = std::get_if<Stand>(&action);
    if (stand != nullptr && !stand->fills())
      all.emplace_back(stand->backward, stand->range.begin, stand->range.end, stand->micro);
  }
  return all;
}

}  // namespace

TEST_CASE("fillers: compute ops that are cut give the bits of whole ones, whatever stream is held back") {
  for (const ReplayJob& what : replay_jobs()) {
    const std::vector<Plan> plans = host_plans(what.job, {.policy = Policy::resident}).plans;
    const std::vector<RankNumbers> good = reference(compile_all(plans), {.steps = 2});
    const Candidate pipelined{
        .policy = Policy::pipelined, .chunk_numel = {owned_of(plans.front()) / 5 | 1}, .slots = 2};
    for (const Where where : kEverywhere) {
      const std::vector<Plan> cuts = cut(host_plans(what.job, pipelined).plans, where);
      const std::vector<Program> programs = compile_all(cuts);
      const std::vector<ReferenceOptions> orders = all_orders(programs.size(), {}, 2);
      for (const std::vector<RankNumbers>& numbers : references(programs, orders)) {
        INFO(what.name << ", cut " << static_cast<int>(where));
        REQUIRE(numbers.size() == good.size());
        for (std::size_t r = 0; r < good.size(); ++r) {
          CHECK(numbers[r].steps == good[r].steps);
          CHECK(numbers[r].final_state == good[r].final_state);
          CHECK(numbers[r].strays == 0);
        }
      }
    }
  }
}

TEST_CASE("fillers: a life with skipped steps, a save and a load is the same, of plain and of FP8 parameters") {
  TrainingOptions training;
  training.injections = {{.step = 1, .rank = 0, .value = std::numeric_limits<float>::quiet_NaN()},
                         {.step = 4, .rank = 1, .value = std::numeric_limits<float>::infinity()}};
  const auto events = [](const std::string& directory) {
    return std::vector<LifeEvent>{init(), steps(5), save(directory), steps(1), load(directory), steps(2)};
  };
  for (const bool fp8 : {false, true}) {
    Job job = life_job(2);
    if (fp8) {
      job.precision.fp8 = Fp8Recipe::mxfp8;
      job.precision.fp8_param_gather = true;
      job.precision.fp8_reuse_grad_buffer = false;
      job.precision.fp8_columnwise = Columnwise::lazy;
    }
    const TemporaryDirectory kept("filler-base");
    const Life whole = life_of(job, {.policy = Policy::resident});
    const std::vector<LifeNumbers> good = live(whole, training, events(kept.path()));
    CHECK(good[0].steps[0].skipped);
    CHECK(good[0].steps[3].skipped);
    for (const Where where : kEverywhere) {
      INFO((fp8 ? "FP8, cut " : "cut ") << static_cast<int>(where));
      Life life;
      life.plans = cut(whole.plans, where);
      life.ranks = compile_ranks(life.plans);
      const TemporaryDirectory directory("filler");
      const std::vector<LifeNumbers> numbers = live(life, training, events(directory.path()));
      check_sound(numbers);
      check_tail(good, numbers);
      CHECK(contents(directory.path()) == contents(kept.path()));
    }
  }
}

TEST_CASE("fillers: they take their time, are no micro-batch, and overwrite all of their activations") {
  const Plan plan = host_plans(tiny_job(), {.policy = Policy::resident}).plans.front();
  const Program whole = compile(plan, "plan.json");
  const Plan with = cut(plan, Where::both);
  const Program program = compile(with, "plan.json");
  CHECK(compute_time(program) == compute_time(whole));
  CHECK(consequences(program) == consequences(whole));
  std::size_t fillers = 0;
  for (std::size_t i = 0; i < with.ops.size(); ++i) {
    const auto* stand = std::get_if<Stand>(&program.actions[i]);
    if (stand == nullptr || !stand->fills()) continue;
    ++fillers;
    CHECK(stand->range.numel() == Numel{0});
    CHECK(stand->activations == with.ops[i].buffer);
    const ByteRange all = overwritten(*stand, {1001}, program.padded);
    CHECK(all.at == Bytes{0});
    CHECK(all.bytes == Bytes{1001});
  }
  CHECK(fillers == 2 * consequences(whole).size());
}

TEST_CASE("fillers: an empty range of an op that touches parameters still means all of them") {
  Plan plan = host_plans(tiny_job(), {.policy = Policy::resident}).plans.front();
  std::size_t all = 0;
  for (Op& op : plan.ops) {
    if (op.kind != OpKind::compute) continue;
    op.range = {};
    ++all;
  }
  const Program program = compile(plan, "plan.json");
  REQUIRE(consequences(program).size() == all);
  for (const auto& [backward, begin, end, micro] : consequences(program)) {
    CHECK(begin == 0);
    CHECK(end == program.padded.value);
  }
}
