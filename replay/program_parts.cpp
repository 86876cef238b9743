// compile_life(): the programs of all parts of a life over one host store, and whether each part begins with what the
// one before it leaves.
#include <fmt/format.h>

#include <algorithm>

#include "models/errors.hpp"
#include "replay/program_checkpoint.hpp"
#include "replay/program_compiler.hpp"

namespace ebb::replay {

namespace {

std::size_t index(LifePart part) { return static_cast<std::size_t>(part); }

struct Follows {
  LifePart before;
  LifePart after;
};

/// Every pair of parts that can follow each other (life.hpp).
std::vector<Follows> pairs() {
  using enum LifePart;
  std::vector<Follows> all;
  for (const LifePart after : {load, load_params, first_step, first_skip}) all.push_back({init, after});
  for (const LifePart after : {load, load_params, first_step, first_skip}) all.push_back({first_skip, after});
  for (const LifePart after : {first_step, first_skip}) all.push_back({load_params, after});
  for (const LifePart before : {load, reload, first_step, step, skip, save})
    for (const LifePart after : {step, skip, save, reload}) all.push_back({before, after});
  return all;
}

/// Device buffers by name that are alive at the plan's beginning or end.
std::vector<const Buffer*> alive(const Plan& plan, bool end) {
  std::vector<bool> lives;
  for (const Buffer& buffer : plan.buffers) lives.push_back(buffer.initial);
  for (const Op& op : plan.ops) {
    if (end && op.kind == OpKind::allocate) lives[op.buffer.index] = true;
    if (end && op.kind == OpKind::release) lives[op.buffer.index] = false;
  }
  std::vector<const Buffer*> buffers;
  for (std::size_t b = 0; b < lives.size(); ++b)
    if (lives[b] && plan.buffers[b].memory == Memory::device) buffers.push_back(&plan.buffers[b]);
  std::sort(buffers.begin(), buffers.end(), [](const Buffer* a, const Buffer* b) { return a->name < b->name; });
  return buffers;
}

void check_hand_over(const Plan& before, const Plan& after, const std::string& file) {
  const auto refuse = [&](const std::string& problem) {
    throw InputError({.file = file},
                     fmt::format("rank {}: {} cannot follow {}: {}", before.rank, name_of(after.part),
                                 name_of(before.part), problem),
                     "write all plans again with one ebb");
  };
  const std::vector<const Buffer*> left = alive(before, true);
  const std::vector<const Buffer*> right = alive(after, false);
  for (const std::vector<const Buffer*>* buffers : {&left, &right})
    for (std::size_t i = 1; i < buffers->size(); ++i)
      if ((*buffers)[i]->name == (*buffers)[i - 1]->name)
        refuse(fmt::format("two live buffers are called \"{}\"", (*buffers)[i]->name));
  std::size_t i = 0, j = 0;
  while (i < left.size() || j < right.size()) {
    if (j == right.size() || (i < left.size() && left[i]->name < right[j]->name))
      refuse(fmt::format("buffer \"{}\" is left alive, but {} does not begin with it", left[i]->name,
                         name_of(after.part)));
    if (i == left.size() || right[j]->name < left[i]->name)
      refuse(
          fmt::format("it begins with buffer \"{}\", which {} does not leave", right[j]->name, name_of(before.part)));
    if (left[i]->bytes != right[j]->bytes)
      refuse(fmt::format("buffer \"{}\" has {} bytes before and {} after", left[i]->name, left[i]->bytes.value,
                         right[j]->bytes.value));
    if (left[i]->role != right[j]->role || left[i]->states != right[j]->states || left[i]->holds != right[j]->holds ||
        left[i]->packed != right[j]->packed)
      refuse(fmt::format("buffer \"{}\" does not hold the same before and after", left[i]->name));
    ++i, ++j;
  }
}

bool same_tables(const Plan& a, const Plan& b) {
  return a.rank == b.rank && a.job == b.job && a.precision == b.precision && a.buckets == b.buckets &&
         a.parameters == b.parameters && a.shards == b.shards;
}

bool makes_masters(const Plan& init) {
  return std::any_of(init.ops.begin(), init.ops.end(), [](const Op& op) { return op.work == Work::make_masters; });
}

/// A skipped step is a step up to the host's look at the norm: ops, what they name and their order.
void check_skip(const Program& step, const Program& skip, const std::string& file) {
  const Plan& a = *step.plan;
  const Plan& b = *skip.plan;
  const auto refuse = [&](const std::string& problem) {
    throw InputError({.file = file}, fmt::format("rank {}: {} does not begin as {} does: {}", a.rank, name_of(b.part),
                                                 name_of(a.part), problem));
  };
  if (!step.decision.valid() || step.decision != skip.decision)
    refuse("the host does not look at the gradient norm in the same op of both");
  for (std::uint32_t i = 0; i <= step.decision.index; ++i) {
    Op left = a.ops[i], right = b.ops[i];
    const auto deps_a = a.deps_of(left), deps_b = b.deps_of(right);
    left.deps_begin = right.deps_begin = 0;
    if (left != right || !std::equal(deps_a.begin(), deps_a.end(), deps_b.begin(), deps_b.end()))
      refuse(fmt::format("op {} differs", i));
    for (const BufferId id : {left.buffer, left.host_buffer})
      if (id.valid() && a.buffers[id.index] != b.buffers[id.index])
        refuse(fmt::format("buffer \"{}\" of op {} differs", a.buffers[id.index].name, i));
  }
  if (a.streams != b.streams) refuse("their streams differ");
}

}  // namespace

LifePrograms compile_life(std::span<const Plan* const> plans, const std::string& file) {
  std::array<const Plan*, kPartCount> parts{};
  for (const Plan* plan : plans) {
    if (parts[index(plan->part)] != nullptr)
      throw InputError({.file = file}, fmt::format("rank {}: two plans of part {}", plan->rank, name_of(plan->part)));
    parts[index(plan->part)] = plan;
    check_tables(*plan, file);
    if (plan->parameters.empty() && !plan->shards.empty())
      throw InputError(
          {.file = file},
          fmt::format("rank {}, {}: no parameters that its shards are of", plan->rank, name_of(plan->part)),
          "write all plans again with one ebb");
  }
  const Plan* const steady = parts[index(LifePart::step)];
  if (steady == nullptr) throw InputError({.file = file}, "no plan of the steady step", "write them with --life");
  LifePrograms programs;
  ProgramCompiler compiler(*steady, file);
  programs[index(LifePart::step)] = compiler.run();
  const Plan* const init = parts[index(LifePart::init)];
  const LifeSetting setting{&compiler.host(), init == nullptr || makes_masters(*init)};
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (parts[p] == nullptr || parts[p] == steady) continue;
    if (!same_tables(*steady, *parts[p]))
      throw InputError({.file = file}, fmt::format("rank {}: the plan of part {} is of another job, rank or layout",
                                                   steady->rank, name_of(parts[p]->part)));
    programs[p] = ProgramCompiler(*parts[p], file, setting).run();
  }
  Bytes pinned{0};
  for (const std::optional<Program>& program : programs)
    if (program) pinned = std::max(pinned, program->pinned);
  for (std::optional<Program>& program : programs) {
    if (!program) continue;
    program->staged = pinned - compiler.host().pinned();
    program->pinned = pinned;
    program->gradient_scale = programs[index(LifePart::step)]->gradient_scale;
    EBB_ASSERT(every_place_is_inside(*program));
    check_checkpoint(*program, file);
  }
  for (const Follows& pair : pairs()) {
    const Plan* const before = parts[index(pair.before)];
    const Plan* const after = parts[index(pair.after)];
    if (before != nullptr && after != nullptr) check_hand_over(*before, *after, file);
  }
  for (const auto& [step, skip] :
       {std::pair(LifePart::step, LifePart::skip), std::pair(LifePart::first_step, LifePart::first_skip)})
    if (programs[index(step)] && programs[index(skip)])
      check_skip(*programs[index(step)], *programs[index(skip)], file);
  return programs;
}

}  // namespace ebb::replay
