#include "replay/life_sequence.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/errors.hpp"

namespace ebb::replay {

namespace {

class Sequence {
 public:
  explicit Sequence(const LifePrograms& programs) : programs_(programs) {}

  void on(const LifeEvent& event) {
    using enum LifeEvent::Kind;
    if ((event.kind == init) != parts_.empty()) {
      throw InputError({}, parts_.empty() ? "a life begins with init" : "init comes once, at the beginning",
                       "write another script");
    }
    switch (event.kind) {
      case init:
        return add(LifePart::init);
      case steps:
        for (int i = 0; i < std::min(event.steps, 2); ++i) step();
        return;
      case save:
        if (!all_) throw InputError({}, "there is no state to save before the first step", "take a step first");
        return add(LifePart::save);
      case load_params:
        if (all_) {
          throw InputError({}, "parameters alone are loaded before the first step",
                           "load all state, or begin a life with them");
        }
        return add(LifePart::load_params);
      case load:
        add(all_ ? LifePart::reload : LifePart::load);
        all_ = true;
        return;
    }
  }
  std::vector<LifePart> parts() && { return std::move(parts_); }

 private:
  bool has(LifePart part) const { return programs_[static_cast<std::size_t>(part)].has_value(); }

  /// A skipped first step comes before the one that is not skipped.
  void step() {
    if (!all_ && has(LifePart::first_skip)) add(LifePart::first_skip);
    add(all_ ? LifePart::step : LifePart::first_step);
    if (all_ && has(LifePart::skip)) add(LifePart::skip);
    all_ = true;
  }
  void add(LifePart part) {
    if (!has(part)) {
      throw InputError({}, fmt::format("no plan of part {}", name_of(part)),
                       "write the plans of all parts (ebb simulate --life)");
    }
    parts_.push_back(part);
  }

  const LifePrograms& programs_;
  std::vector<LifePart> parts_;
  bool all_ = false;  // all state exists
};

}  // namespace

std::vector<LifePart> parts_of(const LifeScript& script, const LifePrograms& programs) {
  Sequence sequence(programs);
  for (const LifeEvent& event : script.events) sequence.on(event);
  return std::move(sequence).parts();
}

void check_all_ranks(std::span<const std::int64_t> ranks) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] == static_cast<std::int64_t>(i)) continue;
    throw InputError(
        {},
        fmt::format("rank {} in the place of rank {}: a life has all {} ranks of its job", ranks[i], i, ranks.size()),
        "name the plans of the whole job, as ebb simulate --life wrote them");
  }
}

}  // namespace ebb::replay
