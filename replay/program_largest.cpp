#include "replay/program_largest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "models/errors.hpp"
#include "models/op_order.hpp"

namespace ebb::replay {

namespace {

/// Elements [first, end) of a quantised parameter.
struct Span {
  std::int64_t first = 0;
  std::int64_t end = 0;
};

/// What one buffer of largest values has collected since it was zeroed.
struct Collected {
  struct Found {
    std::uint32_t quantized = 0;
    Span elements;
    OpId op;
  };
  OpId zeroed;
  std::vector<Found> found;
  OpId reduced;       // the last maximum over ranks
  Numel numbers{0};   // that it covered, from the buffer's first
  OpId quantized;     // an op that all this was enough for
  bool more = false;  // something came behind it
};

class LargestCheck {
 public:
  LargestCheck(const Program& program, const std::string& file)
      : program_(program), file_(file), order_(*program.plan), collected_(program.plan->buffers.size()) {
    owned_.resize(program.quantized->parameters.size());
    for (std::uint32_t q = 0; q < owned_.size(); ++q) owned_[q] = owned_spans(q);
  }

  void run() {
    for (std::uint32_t i = 0; i < program_.actions.size(); ++i) {
      at_ = {i};
      const Op& op = plan().ops[i];
      if (op.kind == OpKind::allocate) collected_[op.buffer.index] = {};
      const Action& action = program_.actions[i];
      if (const auto* zero = std::get_if<Zero>(&action)) zeroed(zero->buffer);
      if (const auto* find = std::get_if<FindLargest>(&action)) collect(*find);
      if (const auto* all = std::get_if<LargestCollective>(&action)) reduce(*all);
      if (const auto* quantize = std::get_if<Quantize>(&action)) demand(*quantize);
    }
  }

 private:
  const Plan& plan() const { return *program_.plan; }
  const std::string& name_of_parameter(std::uint32_t q) const {
    return plan().parameters[program_.quantized->parameters[q].parameter].name;
  }

  [[noreturn]] void refuse(const std::string& problem) const {
    const Op& op = plan().ops[at_.index];
    throw InputError({.file = file_}, fmt::format("rank {}, op {} ({} {}): {}", plan().rank, at_.index,
                                                  name_of(op.kind), name_of(op.work), problem));
  }

  /// The rank's elements of a quantised parameter, ascending.
  std::vector<Span> owned_spans(std::uint32_t q) const {
    std::vector<Span> spans;
    for (const PlanShard& shard : plan().shards)
      if (shard.parameter == program_.quantized->parameters[q].parameter && shard.numel.value > 0)
        spans.push_back({shard.offset.value, (shard.offset + shard.numel).value});
    std::sort(spans.begin(), spans.end(), [](Span a, Span b) { return a.first < b.first; });
    return spans;
  }
  bool owns_all(std::uint32_t q) const {
    const QuantizedParameter& parameter = program_.quantized->parameters[q];
    std::int64_t numel = 0;
    for (const Span& span : owned_[q]) numel += span.end - span.first;
    return numel == parameter.rows * parameter.columns;
  }

  void zeroed(BufferId buffer) {
    collected_[buffer.index] = {};
    collected_[buffer.index].zeroed = at_;
  }

  /// What is collected before that would be lost, and what the storage held before would count.
  Collected& zeroed_before(BufferId largest) {
    Collected& collected = collected_[largest.index];
    if (!collected.zeroed.valid() || !order_.before(collected.zeroed, at_))
      refuse(fmt::format("buffer \"{}\" of largest values is not zeroed before", plan().buffers[largest.index].name));
    return collected;
  }

  void collect(const FindLargest& find) {
    Collected& into = zeroed_before(find.largest);
    for (const QuantizedRun& run : find.runs)
      into.found.push_back({run.quantized, {run.first, run.first + run.numel.value}, at_});
    into.more = true;
  }

  void reduce(const LargestCollective& all) {
    Collected& into = zeroed_before(all.largest);
    into.reduced = at_;
    into.numbers = all.numel;
    into.more = true;
  }

  void demand(const Quantize& quantize) {
    Collected& from = collected_[quantize.largest.index];
    // What an op before it needed, it finds as well.
    if (from.quantized.valid() && !from.more && order_.before(from.quantized, at_)) return;
    for (const QuantizedRun& scale : quantize.scales) {
      if (!owns_all(scale.quantized)) demand_reduced(from, scale);
      demand_measured(from, scale.quantized);
    }
    from.quantized = at_;
    from.more = false;
  }

  void demand_reduced(const Collected& from, const QuantizedRun& scale) const {
    const std::int64_t behind = scale.largest.value / 4 + program_.quantized->parameters[scale.quantized].largest;
    if (!from.reduced.valid() || !order_.before(from.reduced, at_) || from.numbers.value < behind)
      refuse(fmt::format(
          "other ranks own elements of \"{}\" as well, but their largest values do not come together before",
          name_of_parameter(scale.quantized)));
  }

  void demand_measured(const Collected& from, std::uint32_t q) const {
    const OpId until = owns_all(q) ? at_ : from.reduced;
    std::vector<Span> measured;
    for (const Collected::Found& found : from.found)
      if (found.quantized == q && order_.before(found.op, until)) measured.push_back(found.elements);
    std::sort(measured.begin(), measured.end(), [](Span a, Span b) { return a.first < b.first; });
    auto next = measured.begin();
    std::int64_t covered = 0;
    for (const Span& owned : owned_[q]) {
      covered = std::max(covered, owned.first);
      for (; next != measured.end() && next->first <= covered; ++next) covered = std::max(covered, next->end);
      if (covered >= owned.end) continue;
      const std::int64_t end = next == measured.end() ? owned.end : std::min(owned.end, next->first);
      refuse(
          fmt::format("the scales of \"{}\" need the largest values of all its elements that the rank owns, but "
                      "those of elements [{}, {}) are not found before",
                      name_of_parameter(q), covered, end));
    }
  }

  const Program& program_;
  const std::string& file_;
  Order order_;
  OpId at_;
  std::vector<std::vector<Span>> owned_;  // by quantised parameter
  std::vector<Collected> collected_;      // by buffer
};

}  // namespace

void check_largest(const Program& program, const std::string& file) {
  if (program.quantized) LargestCheck(program, file).run();
}

}  // namespace ebb::replay
