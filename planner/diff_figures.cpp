#include "planner/diff_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "models/quantity_text.hpp"

namespace ebb::diff_figures {

double Sides::difference(OpClass first, OpClass last) const {
  double sum = 0;
  for (auto c = static_cast<int>(first); c <= static_cast<int>(last); ++c) sum += difference(static_cast<OpClass>(c));
  return sum;
}

double Sides::hidden(OpClass first, OpClass last) const {
  double sum = -difference(first, last);
  for (auto c = static_cast<std::size_t>(first); c <= static_cast<std::size_t>(last); ++c)
    sum += in_measured.busy[c] - in_predicted.busy[c];
  return sum;
}

namespace {

double seconds_of(const OpSpan& op) { return to_seconds(op.end - op.start).value; }

std::string rates(double measured, double predicted) {
  return fmt::format("{} where {} was assumed", format_bandwidth({measured}), format_bandwidth({predicted}));
}

std::string times(double measured, double predicted) {
  return fmt::format("{} where {} was assumed", format_seconds({measured}), format_seconds({predicted}));
}

std::string cost(double seconds) {
  return fmt::format("{} {} than assumed", format_seconds({std::abs(seconds)}), seconds > 0 ? "more" : "less");
}

template <class Chosen>
double total_seconds(const RankTimeline& rank, Chosen chosen) {
  double sum = 0;
  for (const OpSpan& op : rank.ops)
    if (chosen(op)) sum += seconds_of(op);
  return sum;
}

/// Bytes over seconds of the ops that are chosen; 0 when there are none.
template <class Chosen, class BytesOf>
double rate_of(const RankTimeline& rank, Chosen chosen, BytesOf bytes_of) {
  double bytes = 0;
  for (const OpSpan& op : rank.ops)
    if (chosen(op)) bytes += bytes_of(op);
  const double seconds = total_seconds(rank, chosen);
  return seconds > 0 ? bytes / seconds : 0;
}

double bytes_of_op(const OpSpan& op) { return static_cast<double>(op.bytes.value); }

struct KernelRate {
  const char* figure;
  const char* what;
  OpClass first;
  OpClass last;
};
constexpr KernelRate kKernelRates[] = {
    {"gpu.adam", "fused Adam", OpClass::adam, OpClass::adam},
    {"gpu.adam_foreach", "unfused Adam", OpClass::adam_foreach, OpClass::adam_foreach},
    {"gpu.hbm", "casts, norm and clip", OpClass::cast, OpClass::norm_clip},
};

bool within(const OpSpan& op, OpClass first, OpClass last) {
  const OpClass cls = class_of(op);
  return cls >= first && cls <= last;
}

/// The part of the difference of these kernels that goes by calls: 0 to 1.
double part_by_calls(const Sides& sides, OpClass first, OpClass last) {
  double bb = 0;
  double bc = 0;
  double cc = 0;
  double bd = 0;
  double cd = 0;
  double bytes = 0;
  double calls = 0;
  for (std::size_t i = 0; i < sides.predicted.ops.size(); ++i) {
    const OpSpan& op = sides.predicted.ops[i];
    if (!within(op, first, last)) continue;
    const double b =
        bytes_of_op(op) * 1e-12;  // in the size of calls: one kernel moves gigabytes in about a millisecond
    const double c = op.calls * 1e-6;
    const double d = seconds_of(sides.measured.ops[i]) - seconds_of(op);
    const double weight = 1 / std::max(seconds_of(op), 1e-6);
    bb += weight * b * b;
    bc += weight * b * c;
    cc += weight * c * c;
    bd += weight * b * d;
    cd += weight * c * d;
    bytes += b;
    calls += c;
  }
  const double determinant = bb * cc - bc * bc;
  if (determinant <= 1e-6 * bb * cc) return 0;  // bytes and calls go together: nothing to tell them apart by
  const double by_bytes = bytes * (cc * bd - bc * cd) / determinant;
  const double by_calls = calls * (bb * cd - bc * bd) / determinant;
  const double sum = by_bytes + by_calls;
  return sum == 0 ? 0 : std::clamp(by_calls / sum, 0.0, 1.0);
}

}  // namespace

void add_kernels(const Sides& sides, std::vector<Assumption>& all) {
  double launches = sides.difference(OpClass::wait_kernel);
  for (const KernelRate& rate : kKernelRates) {
    const auto chosen = [&](const OpSpan& op) { return within(op, rate.first, rate.last); };
    const double difference = sides.difference(rate.first, rate.last);
    if (total_seconds(sides.predicted, chosen) == 0) continue;
    const double by_calls = difference * part_by_calls(sides, rate.first, rate.last);
    launches += by_calls;
    all.push_back({rate.figure,
                   fmt::format("{} ran at {}", rate.what,
                               rates(rate_of(sides.measured, chosen, bytes_of_op),
                                     rate_of(sides.predicted, chosen, bytes_of_op))),
                   difference - by_calls, sides.hidden(rate.first, rate.last)});
  }
  all.push_back({"calls.launch", fmt::format("kernel launches cost {}", cost(launches)), launches, 0});
}

namespace {

/// What a regime's rate did, in seconds.
double effect(double seconds, double measured, double predicted) {
  return measured > 0 && predicted > 0 ? seconds * (predicted / measured - 1) : 0;
}

Assumption one_direction(const char* figure, const char* what, const CopyRegimes& predicted,
                         const CopyRegimes& measured) {
  const bool alone = predicted.alone > 0 && measured.alone > 0;
  return {figure,
          fmt::format("copies {} the device ran at {}{}", what,
                      rates(alone ? measured.alone : measured.both, alone ? predicted.alone : predicted.both),
                      alone ? "" : " beside the other direction"),
          0, 0};
}

std::vector<OpSpan> copies_in(const RankTimeline& rank, Window window) {
  std::vector<OpSpan> copies;
  for (const OpSpan& op : rank.ops)
    if ((op.kind == OpKind::copy_h2d || op.kind == OpKind::copy_d2h) && op.start < window.end && op.end > window.begin)
      copies.push_back(op);
  return copies;
}

/// Makes the effects of the copies' figures add up to their exposed difference, and adds them.
void settle_copies(double difference, std::span<Assumption> copies, std::vector<Assumption>& all) {
  if (difference == 0) return;
  const double sign = difference > 0 ? 1 : -1;
  double sum = 0;
  bool agree = true;
  for (const Assumption& copy : copies) {
    sum += copy.seconds;
    agree &= sign * copy.seconds >= 0;
  }
  // Effects behind compute cost the step nothing.
  if (agree && sign * sum > sign * difference)
    for (Assumption& copy : copies) copy.seconds *= difference / sum;
  const double lost = agree && sign * sum > sign * difference ? 0 : difference - sum;

  Assumption* to = &*std::max_element(copies.begin(), copies.end(), [sign](const Assumption& a, const Assumption& b) {
    return sign * a.seconds < sign * b.seconds;
  });
  double most = 0.5 * std::abs(lost);  // less cannot have done it
  for (Assumption& other : all) {
    if ((other.hidden > 0) != (lost > 0) || std::abs(other.hidden) < most) continue;
    most = std::abs(other.hidden);
    to = &other;
  }
  to->seconds += lost;
  for (Assumption& copy : copies)
    if (copy.seconds != 0) all.push_back(copy);
}

}  // namespace

void add_copies(const Sides& sides, std::vector<Assumption>& all) {
  const double difference = sides.difference(OpClass::copies_both, OpClass::copies_out);
  const std::vector<OpSpan> predicted = copies_in(sides.predicted, sides.predicted_window);
  const std::vector<OpSpan> measured = copies_in(sides.measured, sides.measured_window);
  const CopyRegimes in_p = copy_regimes(predicted, OpKind::copy_h2d);
  const CopyRegimes in_m = copy_regimes(measured, OpKind::copy_h2d);
  const CopyRegimes out_p = copy_regimes(predicted, OpKind::copy_d2h);
  const CopyRegimes out_m = copy_regimes(measured, OpKind::copy_d2h);
  double in = effect(in_p.seconds_alone, in_m.alone, in_p.alone);
  double out = effect(out_p.seconds_alone, out_m.alone, out_p.alone);
  double both = 0;
  const double in_both = effect(in_p.seconds_both, in_m.both, in_p.both);
  const double out_both = effect(out_p.seconds_both, out_m.both, out_p.both);
  if (in_both * out_both < 0)
    ((in_both > 0) == (difference > 0) ? in : out) += (in_both > 0) == (difference > 0) ? in_both : out_both;
  else
    both = effect(in_p.seconds_both, in_m.both + out_m.both, in_p.both + out_p.both);

  Assumption named[] = {
      {"host_link.both",
       fmt::format("copies both ways at once ran at {}", rates(in_m.both + out_m.both, in_p.both + out_p.both)), both,
       0},
      one_direction("host_link.h2d", "to", in_p, in_m),
      one_direction("host_link.d2h", "from", out_p, out_m)};
  named[1].seconds = in;
  named[2].seconds = out;
  settle_copies(difference, named, all);
  const double waits = sides.difference(OpClass::wait_copy);
  all.push_back({"calls.copy", fmt::format("issuing copies cost {}", cost(waits)), waits, 0});
}

namespace {

/// What each member sends; as NCCL's tests count bus bandwidth.
double wire_bytes(const OpSpan& op) {
  const double others = static_cast<double>(op.members - 1) / op.members;
  return bytes_of_op(op) * others * (op.work == Work::all_reduce ? 2 : 1);
}

}  // namespace

void add_collectives(const Sides& sides, std::vector<Assumption>& all) {
  constexpr double kLarge = 1 << 20;  // a rate shows in these alone
  const auto chosen = [](const OpSpan& op) {
    return op.kind == OpKind::collective && op.members > 1 && bytes_of_op(op) >= kLarge;
  };
  const auto remote = [&](const OpSpan& op) { return chosen(op) && op.domains > 1; };
  const double difference = sides.difference(OpClass::all_gather, OpClass::all_to_all);
  const bool network = 2 * total_seconds(sides.predicted, remote) > total_seconds(sides.predicted, chosen);
  const double predicted = rate_of(sides.predicted, chosen, wire_bytes);
  const double measured = rate_of(sides.measured, chosen, wire_bytes);
  if (difference != 0)
    all.push_back({network ? "interconnect.network" : "interconnect.nvlink",
                   predicted > 0 && measured > 0
                       ? fmt::format("the bus bandwidth of collectives was {}", rates(measured, predicted))
                       : fmt::format("small collectives cost {}", cost(difference)),
                   difference, sides.hidden(OpClass::all_gather, OpClass::all_to_all)});
  const double waits = sides.difference(OpClass::wait_collective);
  all.push_back({"calls.collective", fmt::format("issuing collectives cost {}", cost(waits)), waits, 0});
}

void add_host(const Sides& sides, std::vector<Assumption>& all) {
  const auto add = [&](OpClass cls, const char* figure, const char* what) {
    const auto chosen = [cls](const OpSpan& op) { return class_of(op) == cls; };
    double calls = 0;
    for (const OpSpan& op : sides.predicted.ops)
      if (chosen(op)) calls += op.calls;
    if (calls == 0) return;
    all.push_back({figure,
                   fmt::format("{} took {}", what,
                               times(total_seconds(sides.measured, chosen) / calls,
                                     total_seconds(sides.predicted, chosen) / calls)),
                   sides.difference(cls), sides.hidden(cls, cls)});
  };
  add(OpClass::chunk_overhead, "calls.chunk", "the framework's work on a chunk");
  add(OpClass::tensor_scan, "calls.tensor_scan", "the framework's look at a tensor");
  add(OpClass::other_host, "host.pin_seconds_per_gib", "other host work");
  const auto adam = [](const OpSpan& op) { return class_of(op) == OpClass::cpu_adam; };
  if (const double rate = rate_of(sides.predicted, adam, bytes_of_op); rate > 0)
    all.push_back({"host.cpu_adam",
                   fmt::format("Adam on the host ran at {}", rates(rate_of(sides.measured, adam, bytes_of_op), rate)),
                   sides.difference(OpClass::cpu_adam), sides.hidden(OpClass::cpu_adam, OpClass::cpu_adam)});
  const double waits = sides.difference(OpClass::wait_host);
  all.push_back({"calls.synchronize", fmt::format("waiting for the host cost {}", cost(waits)), waits, 0});
}

void add_compute(const Sides& sides, std::vector<Assumption>& all) {
  const auto chosen = [](const OpSpan& op) { return op.kind == OpKind::compute; };
  const double difference = sides.difference(OpClass::compute);
  if (difference != 0)
    all.push_back({"gpu.compute_efficiency",
                   fmt::format("forward and backward took {}",
                               times(total_seconds(sides.measured, chosen), total_seconds(sides.predicted, chosen))),
                   difference, 0});
}

}  // namespace ebb::diff_figures
