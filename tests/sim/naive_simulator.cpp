#include "tests/sim/naive_simulator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "sim/op_cost.hpp"

namespace ebb::test {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

double seconds(Ticks t) { return to_seconds(t).value; }
bool is_copy(const Op& op) { return op.kind == OpKind::copy_h2d || op.kind == OpKind::copy_d2h; }

struct OpState {
  double first_call = kNever;  // issued
  double last_call = 0;
  Span span;
  bool taken = false;  // by a lane
  double flows_from = kNever;
  double left = 0;  // bytes
};

/// Something that moves bytes now.
struct Flow {
  std::size_t place = 0;
  std::size_t op = 0;
  OpKind kind = OpKind::copy_h2d;
  Memory host = Memory::pinned;
  double bytes = 0;
  double weight = 1;
  double cap = kNever;
  bool on_link = false;              // a collective over the GPUs' host links ...
  std::vector<std::size_t> members;  // ... of these places (and the first has the op)
  double rate = 0;
};

class Naive {
 public:
  Naive(const std::vector<const Plan*>& plans, std::int64_t first_rank, const Cluster& cluster)
      : plans_(plans),
        first_rank_(first_rank),
        c_(cluster),
        cost_(cluster, {.ranks_per_host = static_cast<std::int64_t>(plans.size())}) {
    for (const Plan* plan : plans) state_.emplace_back(plan->ops.size());
    host_pos_.resize(plans.size());
    host_free_.resize(plans.size());
  }

  std::vector<std::vector<Span>> run() {
    for (;;) {
      while (step()) {
      }
      std::vector<Flow> flows = flowing();
      share(flows);
      const double next = next_event(flows);
      if (next == kNever) break;
      for (const Flow& flow : flows) move(flow, next);
      now_ = next;
    }
    std::vector<std::vector<Span>> spans;
    for (const auto& of_place : state_) {
      spans.emplace_back();
      for (const OpState& op : of_place) spans.back().push_back(op.span);
    }
    return spans;
  }

 private:
  const Op& op(std::size_t p, std::size_t i) const { return plans_[p]->ops[i]; }
  bool on_host(std::size_t p, std::size_t i) const {
    return plans_[p]->streams[op(p, i).stream.index].kind == StreamKind::host;
  }
  bool shares(const Op& o) const {
    if (is_copy(o)) return true;
    if (o.kind == OpKind::collective) return o.members > 1;
    if (o.kind != OpKind::kernel) return false;
    // Beside everything else that a GPU does, 3 TB/s of Adam fit into HBM; the tests' clusters lie well apart.
    return o.work != Work::adam || c_.gpu.adam.value.value > 4e12;
  }

  /// When all that op i waits for has ended; kNever while something has not.
  double deps_end(std::size_t p, std::size_t i) const {
    double ready = 0;
    const auto must_end = [&](std::size_t j) {
      const double end = state_[p][j].span.end;
      ready = std::max(ready, end < 0 || end > now_ ? kNever : end);
    };
    for (const OpId dep : plans_[p]->deps_of(op(p, i))) must_end(dep.index);
    if (on_host(p, i)) return ready;  // the host thread is in order by itself
    for (std::size_t j = i; j-- > 0;) {
      if (op(p, j).stream == op(p, i).stream) {
        must_end(j);
        break;
      }
    }
    return ready;
  }

  bool step() {
    bool changed = false;
    for (std::size_t p = 0; p < plans_.size(); ++p) changed |= host_thread(p);
    for (std::size_t p = 0; p < plans_.size() && !changed; ++p) changed |= fixed_ops(p);
    if (changed) return true;
    for (std::size_t p = 0; p < plans_.size(); ++p) changed |= lanes(p);
    return changed;
  }

  bool host_thread(std::size_t p) {
    if (host_pos_[p] == plans_[p]->ops.size() || host_free_[p] > now_) return false;
    const std::size_t i = host_pos_[p];
    OpState& state = state_[p][i];
    if (on_host(p, i)) {
      if (deps_end(p, i) > now_) return false;
      state.span = {now_, now_ + seconds(cost_(op(p, i)))};
      host_free_[p] = state.span.end;
    } else {
      std::uint32_t events = 0;
      for (const OpId dep : plans_[p]->deps_of(op(p, i)))
        if (!on_host(p, dep.index) && op(p, dep.index).stream != op(p, i).stream) ++events;
      const sim::Issue issue = cost_.issue(op(p, i), events);
      state.first_call = now_ + seconds(issue.first);
      state.last_call = host_free_[p] = now_ + seconds(issue.all);
    }
    ++host_pos_[p];
    return true;
  }

  double ready_at(std::size_t p, std::size_t i) const {
    const OpState& state = state_[p][i];
    if (on_host(p, i) || state.span.start >= 0 || state.first_call > now_) return kNever;
    return std::max(deps_end(p, i), state.first_call);
  }

  bool fixed_ops(std::size_t p) {
    bool changed = false;
    for (std::size_t i = 0; i < state_[p].size(); ++i) {
      if (shares(op(p, i))) continue;
      const double ready = ready_at(p, i);
      if (ready > now_) continue;
      state_[p][i].span = {ready, std::max(ready + seconds(cost_(op(p, i))), state_[p][i].last_call)};
      changed = true;
    }
    return changed;
  }

  /// 0 and 1: copy engines; 2: kernels; 3: collectives.
  static int lane_of(const Op& o) {
    if (o.kind == OpKind::copy_h2d) return 0;
    if (o.kind == OpKind::copy_d2h) return 1;
    return o.kind == OpKind::kernel ? 2 : 3;
  }

  /// Each free lane takes the op that became ready first.
  bool lanes(std::size_t p) {
    bool changed = false;
    for (int lane = 0; lane < 3; ++lane) {
      std::size_t first = state_[p].size();
      double first_ready = kNever;
      bool busy = false;
      for (std::size_t i = 0; i < state_[p].size(); ++i) {
        if (!shares(op(p, i)) || lane_of(op(p, i)) != lane) continue;
        busy |= state_[p][i].taken && (state_[p][i].span.end < 0 || state_[p][i].span.end > now_);
        const double ready = ready_at(p, i);
        if (ready <= now_ && ready < first_ready) first = i, first_ready = ready;
      }
      if (busy || first == state_[p].size()) continue;
      const Op& o = op(p, first);
      begin(p, first, is_copy(o) ? seconds(cost_(o)) : c_.gpu.kernel_floor.value.value,
            static_cast<double>(o.bytes.value));
      changed = true;
    }
    for (std::size_t i = 0; i < state_[p].size(); ++i)
      if (op(p, i).kind == OpKind::collective && shares(op(p, i)) && ready_at(p, i) <= now_) changed |= meet(p, i);
    return changed;
  }

  void begin(std::size_t p, std::size_t i, double latency, double bytes) {
    OpState& state = state_[p][i];
    state.taken = true;
    state.span.start = now_;
    state.flows_from = now_ + latency;
    state.left = bytes;
  }

  std::vector<std::size_t> members_of(std::size_t p, const Op& o) const {
    const std::int64_t rank = first_rank_ + static_cast<std::int64_t>(p);
    const std::int64_t first = rank - rank / o.stride % o.members * o.stride;
    std::vector<std::size_t> places;
    for (std::size_t q = 0; q < plans_.size(); ++q) {
      const std::int64_t other = first_rank_ + static_cast<std::int64_t>(q) - first;
      if (other >= 0 && other % o.stride == 0 && other / o.stride < o.members) places.push_back(q);
    }
    return places;
  }

  /// The collective that the place waits at in that group; ops.size(): none.
  std::size_t waits_at(std::size_t p, const Op& like) const {
    for (std::size_t i = 0; i < state_[p].size(); ++i) {
      const Op& o = op(p, i);
      if (o.kind == OpKind::collective && o.stride == like.stride && o.members == like.members &&
          ready_at(p, i) <= now_)
        return i;
    }
    return state_[p].size();
  }

  bool meet(std::size_t p, std::size_t i) {
    const Op& o = op(p, i);
    const std::vector<std::size_t> places = members_of(p, o);
    std::vector<std::size_t> ops;
    for (const std::size_t q : places) {
      ops.push_back(waits_at(q, o));
      if (ops.back() == state_[q].size()) return false;
    }
    const sim::CollectiveTime time = cost_.collective(o);
    const double bytes = time.transfer_ticks / static_cast<double>(kTicksPerSecond) * fastest(p, o).rate;
    for (std::size_t k = 0; k < places.size(); ++k) {
      begin(places[k], ops[k], time.latency_ticks / static_cast<double>(kTicksPerSecond), k == 0 ? bytes : 0.0);
      if (k > 0) state_[places[k]][ops[k]].flows_from = kNever;  // ends with the first
    }
    double last = 0;
    for (std::size_t k = 0; k < places.size(); ++k) last = std::max(last, state_[places[k]][ops[k]].last_call);
    state_[places[0]][ops[0]].last_call = last;
    together_.emplace_back(places, ops);
    return true;
  }

  /// The fastest wire of the place's collectives in the group of `o`, in bytes a second.
  struct Wire {
    double rate = 0;
    bool on_link = false;
    double wire_per_rate = 1;
  };
  Wire fastest(std::size_t p, const Op& like) const {
    double wire = 0;
    double link = 0;
    for (const Op& o : plans_[p]->ops) {
      if (o.kind != OpKind::collective || o.stride != like.stride || o.members != like.members) continue;
      wire = std::max(wire, cost_.collective(o).wire_bytes_per_tick * static_cast<double>(kTicksPerSecond));
      link = std::max(link, cost_.collective(o).host_link_bytes_per_tick * static_cast<double>(kTicksPerSecond));
    }
    return link > 0 ? Wire{link, true, wire / link} : Wire{wire, false, 1};
  }

  std::vector<Flow> flowing() const {
    std::vector<Flow> flows;
    for (std::size_t p = 0; p < plans_.size(); ++p) {
      for (std::size_t i = 0; i < state_[p].size(); ++i) {
        const OpState& state = state_[p][i];
        if (!state.taken || state.span.end >= 0 || state.flows_from > now_) continue;
        const Op& o = op(p, i);
        Flow flow{.place = p, .op = i, .kind = o.kind, .host = o.host, .members = {}};
        flow.bytes = static_cast<double>(o.bytes.value);
        if (o.kind == OpKind::copy_d2h) flow.weight = c_.host_link.d2h_weight.value;
        if (is_copy(o) && o.host == Memory::pageable)
          flow.cap = (o.kind == OpKind::copy_h2d ? c_.host_link.pageable_h2d : c_.host_link.pageable_d2h).value.value;
        if (o.kind == OpKind::collective) {
          flow.members = members_of(p, o);
          flow.on_link = fastest(p, o).on_link;
          flow.cap = fastest(p, o).rate;
        }
        flows.push_back(std::move(flow));
      }
    }
    return flows;
  }

  /// What a byte of a copy of this size loads the limit of both directions with.
  double size_load(const Flow& flow) const {
    const auto& sizes = c_.host_link.both_by_size.value;
    if (sizes.empty() || flow.host == Memory::pageable) return 1;
    double rate = sizes.back().rate.value;
    for (std::size_t i = sizes.size(); i-- > 0;)
      if (flow.bytes <= static_cast<double>(sizes[i].bytes.value)) rate = sizes[i].rate.value;
    return c_.host_link.both.value.value / rate;
  }

  /// Whether the flows' rates fit every limit.
  bool fits(const std::vector<Flow>& flows) const {
    const double slack = 1 + 1e-12;
    const std::size_t places = plans_.size();
    const auto sockets = static_cast<std::size_t>(c_.host.sockets);
    const auto gpus = std::max(static_cast<std::size_t>(c_.gpus_per_host), places);
    const auto in_switch = static_cast<std::size_t>(c_.topology.gpus_per_switch);
    const double remote = sockets > 1 ? c_.topology.remote_memory.value : 0;
    std::vector<double> in(places), out(places), both(places);
    std::vector<double> up_in(places), up_out(places), root_in(sockets), root_out(sockets), memory(sockets),
        cross_in(sockets), cross_out(sockets);
    double host_in = 0;
    double host_out = 0;
    for (const Flow& flow : flows) {
      for (const std::size_t q : flow.members) {
        if (!flow.on_link) continue;
        in[q] += flow.rate, out[q] += flow.rate, both[q] += 2 * flow.rate;
      }
      if (flow.kind != OpKind::copy_h2d && flow.kind != OpKind::copy_d2h) continue;
      const bool to_device = flow.kind == OpKind::copy_h2d;
      const std::size_t p = flow.place;
      const std::size_t near = p * sockets / gpus;
      (to_device ? in : out)[p] += flow.rate;
      both[p] += flow.rate * size_load(flow);
      (to_device ? up_in : up_out)[p / in_switch] += flow.rate;
      (to_device ? root_in : root_out)[near] += flow.rate;
      (to_device ? host_in : host_out) += flow.rate;
      memory[near] += flow.rate * (1 - remote);
      (to_device ? cross_in : cross_out)[near] += flow.rate * remote;
      for (std::size_t s = 0; s < sockets && sockets > 1; ++s) {
        if (s == near) continue;
        const double part = flow.rate * remote / static_cast<double>(sockets - 1);
        memory[s] += part;
        (to_device ? cross_out : cross_in)[s] += part;
      }
    }
    const auto all = [&](const std::vector<double>& loads, double limit) {
      return std::all_of(loads.begin(), loads.end(), [&](double load) { return load <= limit * slack; });
    };
    const auto sums = [&](std::vector<double> a, const std::vector<double>& b, double limit) {
      for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
      return all(a, limit);
    };
    const HostLink& link = c_.host_link;
    const Topology& t = c_.topology;
    return all(in, link.h2d.value.value) && all(out, link.d2h.value.value) && all(both, link.both.value.value) &&
           all(up_in, t.switch_one_way.value.value) && all(up_out, t.switch_one_way.value.value) &&
           sums(up_in, up_out, t.switch_both.value.value) && all(root_in, t.socket_one_way.value.value) &&
           all(root_out, t.socket_one_way.value.value) && sums(root_in, root_out, t.socket_both.value.value) &&
           all(memory, t.socket_memory.value.value) && all(cross_in, t.inter_socket.value.value) &&
           all(cross_out, t.inter_socket.value.value) && host_in <= link.host_one_way.value.value * slack &&
           host_out <= link.host_one_way.value.value * slack &&
           host_in + host_out <= link.host_both.value.value * slack;
  }

  /// Raises the common level of all open flows by bisection, fixes those that cannot be raised any more, and goes on
  /// with the others.
  void share(std::vector<Flow>& flows) const {
    std::vector<Flow*> open;
    for (Flow& flow : flows)
      if (flow.kind == OpKind::copy_h2d || flow.kind == OpKind::copy_d2h || flow.on_link) open.push_back(&flow);
    const auto highest = [](auto holds) {
      double low = 0;
      double high = 1e15;
      for (int i = 0; i < 100; ++i) (holds((low + high) / 2) ? low : high) = (low + high) / 2;
      return low;
    };
    while (!open.empty()) {
      const auto set = [&](double level) {
        for (Flow* flow : open) flow->rate = std::min(flow->cap, level * flow->weight);
        return fits(flows);
      };
      set(highest(set));
      std::vector<Flow*> still;
      for (Flow* flow : open) {
        const double rate = flow->rate;
        flow->rate = std::min(flow->cap, rate * (1 + 1e-6));
        if (flow->rate > rate && fits(flows)) still.push_back(flow);
        flow->rate = rate;
      }
      if (still.size() == open.size()) still.clear();
      open = still;
    }
    for (Flow& flow : flows)
      if (flow.kind == OpKind::collective && !flow.on_link) flow.rate = flow.cap * (1 - slowed(flow, flows));
    for (Flow& flow : flows)
      if (flow.kind == OpKind::kernel) flow.rate = hbm_left(flow, flows);
  }

  double slowed(const Flow& collective, const std::vector<Flow>& flows) const {
    double busiest = 0;
    for (const Flow& flow : flows) {
      if (flow.kind != OpKind::copy_h2d && flow.kind != OpKind::copy_d2h) continue;
      if (std::find(collective.members.begin(), collective.members.end(), flow.place) == collective.members.end())
        continue;
      const double link = (flow.kind == OpKind::copy_h2d ? c_.host_link.h2d : c_.host_link.d2h).value.value;
      busiest = std::max(busiest, flow.rate / std::min(link, flow.cap));
    }
    return c_.interconnect.copy_interference.value * busiest;
  }

  double hbm_left(const Flow& kernel, const std::vector<Flow>& flows) const {
    const double hbm = c_.gpu.hbm.value.value;
    double taken = 0;
    for (const Flow& flow : flows) {
      if (flow.kind == OpKind::collective) {
        if (std::find(flow.members.begin(), flow.members.end(), kernel.place) != flow.members.end())
          taken += 2.5 * flow.rate * fastest(flow.place, op(flow.place, flow.op)).wire_per_rate;
      } else if (flow.place == kernel.place && flow.kind != OpKind::kernel) {
        taken += flow.rate;
      }
    }
    const bool adam = op(kernel.place, kernel.op).work == Work::adam;
    return std::min(adam ? c_.gpu.adam.value.value : hbm, std::max(hbm - taken, hbm / 4));
  }

  double next_event(const std::vector<Flow>& flows) const {
    double next = kNever;
    const auto at = [&](double t) {
      if (t > now_) next = std::min(next, t);
    };
    for (std::size_t p = 0; p < plans_.size(); ++p) {
      if (host_pos_[p] < plans_[p]->ops.size()) at(host_free_[p]);
      for (const OpState& state : state_[p]) {
        if (state.first_call < kNever && state.span.start < 0) at(state.first_call);
        at(state.span.end);
        if (state.taken && state.span.end < 0 && state.flows_from < kNever) at(state.flows_from);
      }
    }
    for (const Flow& flow : flows) next = std::min(next, now_ + state_[flow.place][flow.op].left / flow.rate);
    return next;
  }

  void move(const Flow& flow, double next) {
    OpState& state = state_[flow.place][flow.op];
    const double ends = now_ + state.left / flow.rate;
    state.left -= flow.rate * (next - now_);
    if (ends > next) return;
    state.span.end = std::max(next, state.last_call);
    for (const auto& [places, ops] : together_) {
      if (places[0] != flow.place || ops[0] != flow.op) continue;
      for (std::size_t k = 1; k < places.size(); ++k) state_[places[k]][ops[k]].span.end = state.span.end;
    }
  }

  const std::vector<const Plan*>& plans_;
  std::int64_t first_rank_;
  const Cluster& c_;
  sim::OpCost cost_;
  double now_ = 0;
  std::vector<std::vector<OpState>> state_;
  std::vector<std::size_t> host_pos_;
  std::vector<double> host_free_;
  std::vector<std::pair<std::vector<std::size_t>, std::vector<std::size_t>>> together_;  // collectives that have begun
};

}  // namespace

std::vector<std::vector<Span>> naive_simulate(const std::vector<const Plan*>& plans, std::int64_t first_rank,
                                              const Cluster& cluster) {
  return Naive(plans, first_rank, cluster).run();
}

std::vector<Span> naive_simulate(const Plan& plan, const Cluster& cluster, const sim::Sharing& sharing) {
  return naive_simulate(std::vector<const Plan*>(static_cast<std::size_t>(sharing.ranks_per_host), &plan), 0, cluster)
      .front();
}

}  // namespace ebb::test
