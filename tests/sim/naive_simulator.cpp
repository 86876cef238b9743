#include "tests/sim/naive_simulator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/op_cost.hpp"

namespace ebb::test {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Running {
  std::size_t op = 0;
  double left = 0;        // bytes
  double flows_from = 0;  // after its latency
  bool busy = false;
};

struct Rates {
  double in = 0;
  double out = 0;
};

/// The highest level at which rates min(level * weight, own limit) fit all limits: bisection on a monotone predicate,
/// then each direction is raised alone as far as it goes.
Rates share(const HostLink& link, double ranks, bool in_flows, bool out_flows) {
  const auto fits = [&](double in, double out) {
    return in <= link.h2d.value.value && out <= link.d2h.value.value && in + out <= link.both.value.value &&
           in <= link.host_one_way.value.value / ranks && out <= link.host_one_way.value.value / ranks &&
           in + out <= link.host_both.value.value / ranks;
  };
  const auto highest = [](auto holds) {
    double low = 0;
    double high = 1e15;
    for (int i = 0; i < 200; ++i) (holds((low + high) / 2) ? low : high) = (low + high) / 2;
    return low;
  };
  const double weight = link.d2h_weight.value;
  const double level = highest([&](double s) { return fits(in_flows ? s : 0, out_flows ? s * weight : 0); });
  Rates rates{in_flows ? level : 0, out_flows ? level * weight : 0};
  if (in_flows) rates.in = highest([&](double x) { return fits(x, rates.out); });
  if (out_flows) rates.out = highest([&](double x) { return fits(rates.in, x); });
  return rates;
}

bool is_copy(const Op& op) { return op.kind == OpKind::copy_h2d || op.kind == OpKind::copy_d2h; }

/// The moment from which op i may run; kNever while something it waits for has not ended.
double ready_at(const Plan& plan, const std::vector<Span>& spans, std::size_t i, double now) {
  double ready = 0;
  const auto must_end = [&](std::size_t j) {
    ready = std::max(ready, spans[j].end < 0 || spans[j].end > now ? kNever : spans[j].end);
  };
  for (const OpId dep : plan.deps_of(plan.ops[i])) must_end(dep.index);
  for (std::size_t j = i; j-- > 0;) {
    if (plan.ops[j].stream == plan.ops[i].stream) {
      must_end(j);
      break;
    }
  }
  return ready;
}

}  // namespace

std::vector<Span> naive_simulate(const Plan& plan, const Cluster& cluster, const sim::Sharing& sharing) {
  const sim::OpCost cost(cluster, sharing);
  std::vector<Span> spans(plan.ops.size());
  Running engines[2];
  double now = 0;
  for (;;) {
    bool changed = true;
    while (changed) {  // whatever may start at this moment starts
      changed = false;
      std::size_t first[2] = {plan.ops.size(), plan.ops.size()};
      double first_ready[2] = {kNever, kNever};
      for (std::size_t i = 0; i < plan.ops.size(); ++i) {
        if (spans[i].start >= 0) continue;
        const double ready = ready_at(plan, spans, i, now);
        if (ready > now) continue;
        if (!is_copy(plan.ops[i])) {
          spans[i] = {ready, ready + to_seconds(cost(plan.ops[i])).value};
          changed = true;
          continue;
        }
        const int d = plan.ops[i].kind == OpKind::copy_h2d ? 0 : 1;
        if (ready < first_ready[d]) {
          first[d] = i;
          first_ready[d] = ready;
        }
      }
      if (changed) continue;
      for (int d = 0; d < 2; ++d) {
        if (engines[d].busy || first[d] == plan.ops.size()) continue;
        const Op& op = plan.ops[first[d]];
        engines[d] = {first[d], static_cast<double>(op.bytes.value), now + to_seconds(cost(op)).value, true};
        spans[first[d]].start = now;
        changed = true;
      }
    }

    const bool in_flows = engines[0].busy && engines[0].flows_from <= now;
    const bool out_flows = engines[1].busy && engines[1].flows_from <= now;
    const Rates rates = share(cluster.host_link, static_cast<double>(sharing.ranks_per_host), in_flows, out_flows);
    const double rate[2] = {rates.in, rates.out};
    const bool flows[2] = {in_flows, out_flows};
    double next = kNever;
    double flow_end[2] = {kNever, kNever};
    for (const Span& span : spans) {
      if (span.end > now) next = std::min(next, span.end);
    }
    for (int d = 0; d < 2; ++d) {
      if (flows[d]) flow_end[d] = now + engines[d].left / rate[d];
      next = std::min(next, flows[d] ? flow_end[d] : engines[d].busy ? engines[d].flows_from : kNever);
    }
    if (next == kNever) return spans;
    for (int d = 0; d < 2; ++d) {
      if (!flows[d]) continue;
      engines[d].left -= rate[d] * (next - now);
      if (flow_end[d] > next) continue;
      spans[engines[d].op].end = next;
      engines[d].busy = false;
    }
    now = next;
  }
}

}  // namespace ebb::test
