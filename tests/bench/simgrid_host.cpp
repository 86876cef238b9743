#include "tests/bench/simgrid_host.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <simgrid/s4u.hpp>
#include <string>
#include <variant>
#include <vector>

#include "models/errors.hpp"
#include "sim/op_cost.hpp"

namespace ebb::bench {
namespace {

namespace sg = simgrid::s4u;

constexpr std::uint32_t kNone = 0xffffffffU;

std::uint64_t size_of(const Op& op) { return static_cast<std::uint64_t>(op.bytes.value); }

/// Host memory is one SimGrid host and each GPU another, of 1 flop/s: an execution of x flops takes x seconds.
struct Platform {
  sg::Host* memory = nullptr;
  std::vector<sg::Host*> gpus;

  Platform(const Cluster& cluster, Seconds copy_latency, int count) {
    const HostLink& link = cluster.host_link;
    EBB_ASSERT(link.d2h_weight.value == 1.0);
    sg::NetZone* zone = sg::create_full_zone("host");
    memory = zone->create_host("memory", 1.0)->seal();
    const auto create = [&](const std::string& name, BytesPerSecond rate) {
      return zone->create_link(name, rate.value);
    };
    const auto connect = [&](sg::Host* from, sg::Host* to, const std::array<sg::Link*, 4>& links) {
      std::vector<sg::LinkInRoute> route;
      for (const sg::Link* l : links) route.emplace_back(l);
      zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, route, false);
    };
    sg::Link* host_in = create("host_in", link.host_one_way.value)->seal();
    sg::Link* host_out = create("host_out", link.host_one_way.value)->seal();
    sg::Link* host_both = create("host_both", link.host_both.value)->seal();
    for (int g = 0; g < count; ++g) {
      const std::string name = "gpu" + std::to_string(g);
      sg::Host* gpu = zone->create_host(name, 1.0)->seal();
      sg::Link* in = create(name + "_h2d", link.h2d.value)->set_latency(copy_latency.value)->seal();
      sg::Link* out = create(name + "_d2h", link.d2h.value)->set_latency(copy_latency.value)->seal();
      sg::Link* both = create(name + "_both", link.both.value)->seal();
      connect(memory, gpu, {in, both, host_in, host_both});
      connect(gpu, memory, {out, both, host_out, host_both});
      gpus.push_back(gpu);
    }
    zone->seal();
  }
};

/// One GPU's plan as activities that start each other.
class Activities {
 public:
  Activities(const Plan& plan, const sim::OpCost& cost, const Platform& platform, sg::Host* gpu) {
    std::vector<std::uint32_t> last(plan.streams.size(), kNone);  // op of each stream
    for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
      const Op& op = plan.ops[i];
      all_.push_back(activity(op, cost, platform, gpu));
      std::uint32_t& before = last[op.stream.index];
      bool fifo = before != kNone;
      for (const OpId dep : plan.deps_of(op)) {
        depend(dep.index, i);
        fifo &= dep.index != before;  // SimGrid refuses a dependency it has
      }
      if (fifo) depend(before, i);
      before = i;
    }
    for (const Activity& one : all_) std::visit([](const auto& a) { a->vetoable_start(); }, one);
  }

 private:
  using Activity = std::variant<sg::CommPtr, sg::ExecPtr>;

  static Activity activity(const Op& op, const sim::OpCost& cost, const Platform& platform, sg::Host* gpu) {
    if (op.kind == OpKind::copy_h2d) return sg::Comm::sendto_init(platform.memory, gpu)->set_payload_size(size_of(op));
    if (op.kind == OpKind::copy_d2h) return sg::Comm::sendto_init(gpu, platform.memory)->set_payload_size(size_of(op));
    EBB_ASSERT(op.kind == OpKind::kernel);
    return sg::Exec::init()->set_flops_amount(to_seconds(cost(op)).value)->set_host(gpu);
  }

  void depend(std::uint32_t before, std::uint32_t after) {
    std::visit([](const auto& b, const auto& a) { b->add_successor(a); }, all_[before], all_[after]);
  }

  std::vector<Activity> all_;
};

/// One GPU's plan as an actor for each stream.
class Actors {
 public:
  Actors(const Plan& plan, const sim::OpCost& cost, const Platform& platform, sg::Host* gpu)
      : plan_(plan),
        cost_(cost),
        memory_(platform.memory),
        gpu_(gpu),
        ended_(plan.ops.size()),
        waiters_(plan.ops.size()) {
    for (const Op& op : plan.ops) {
      for (const OpId dep : plan.deps_of(op)) {
        if (elsewhere(op, dep)) ++waiters_[dep.index];
      }
    }
    for (std::size_t i = 0; i < ended_.size(); ++i) {
      if (waiters_[i] > 0) ended_[i] = sg::Semaphore::create(0);
    }
    for (std::uint32_t s = 0; s < plan.streams.size(); ++s) {
      sg::Actor::create("stream", gpu, [this, s] { run(s); });
    }
  }
  Actors(const Actors&) = delete;
  Actors& operator=(const Actors&) = delete;

 private:
  bool elsewhere(const Op& op, OpId dep) const { return plan_.ops[dep.index].stream != op.stream; }

  void run(std::uint32_t stream) {
    for (std::uint32_t i = 0; i < plan_.ops.size(); ++i) {
      const Op& op = plan_.ops[i];
      if (op.stream.index != stream) continue;
      for (const OpId dep : plan_.deps_of(op)) {
        if (elsewhere(op, dep)) ended_[dep.index]->acquire();
      }
      execute(op);
      for (std::uint32_t waiter = 0; waiter < waiters_[i]; ++waiter) ended_[i]->release();
    }
  }

  void execute(const Op& op) const {
    if (op.kind == OpKind::copy_h2d) return sg::Comm::sendto(memory_, gpu_, size_of(op));
    if (op.kind == OpKind::copy_d2h) return sg::Comm::sendto(gpu_, memory_, size_of(op));
    EBB_ASSERT(op.kind == OpKind::kernel);
    sg::this_actor::execute(to_seconds(cost_(op)).value);
  }

  const Plan& plan_;
  const sim::OpCost& cost_;
  sg::Host* memory_;
  sg::Host* gpu_;
  std::vector<sg::SemaphorePtr> ended_;  // by op
  std::vector<std::uint32_t> waiters_;   // by op: ops of other streams that depend on it
};

Result run_here(const Plan& plan, const Cluster& cluster, int gpus, Style style) {
  std::vector<std::string> arguments = {"simgrid",
                                        "--log=root.thres:warning",
                                        "--cfg=network/model:CM02",
                                        "--cfg=network/TCP-gamma:0",
                                        "--cfg=network/bandwidth-factor:1",
                                        "--cfg=network/latency-factor:1",
                                        "--cfg=network/weight-S:0",
                                        "--cfg=network/crosstraffic:0"};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int argc = static_cast<int>(arguments.size());
  const sg::Engine engine(&argc, argv.data());
  const sim::OpCost cost(cluster, {.ranks_per_host = gpus});
  const Platform platform(cluster, to_seconds(cost(plan.ops.front())), gpus);
  std::vector<std::unique_ptr<Activities>> activities;
  std::vector<std::unique_ptr<Actors>> actors;
  for (sg::Host* gpu : platform.gpus) {
    if (style == Style::activities) {
      activities.push_back(std::make_unique<Activities>(plan, cost, platform, gpu));
    } else {
      actors.push_back(std::make_unique<Actors>(plan, cost, platform, gpu));
    }
  }
  const auto start = std::chrono::steady_clock::now();
  engine.run();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return {sg::Engine::get_clock(), seconds.count(), plan.ops.size() * static_cast<std::size_t>(gpus)};
}

}  // namespace

Result run_simgrid(const Plan& plan, const Cluster& cluster, int gpus, Style style, unsigned limit) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) std::abort();
  std::fflush(stdout);  // or the child prints it again
  const pid_t child = fork();
  if (child < 0) std::abort();
  if (child == 0) {
    alarm(limit);
    const Result result = run_here(plan, cluster, gpus, style);
    const bool written = write(ends[1], &result, sizeof result) == static_cast<ssize_t>(sizeof result);
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  Result result;
  if (read(ends[0], &result, sizeof result) != static_cast<ssize_t>(sizeof result)) result = {};
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return result;
}

}  // namespace ebb::bench
