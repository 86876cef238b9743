#include "replay/calibrate_fit.hpp"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "models/errors.hpp"

namespace ebb::replay {
namespace {

constexpr std::size_t kMostSizes = 8;  // of both_by_size (models/cluster_yaml.cpp)

double as_double(Bytes bytes) { return static_cast<double>(bytes.value); }

double median(std::vector<double> values) { return timed(std::move(values)).median; }

Residual residual_of(const std::vector<double>& relative) {
  if (relative.empty()) return {};
  return {.median = median(relative), .worst = *std::max_element(relative.begin(), relative.end())};
}

/// Rows of coefficients and the time that each should give.
template <std::size_t N>
class Fit {
 public:
  void add(const std::array<double, N>& row, double time) {
    EBB_ASSERT(time > 0);
    rows_.push_back(row);
    times_.push_back(time);
  }
  bool empty() const { return rows_.empty(); }

  /// The unknowns. One that comes out below 0, or that no two rows tell apart, is 0 and the rest is fitted again.
  std::array<double, N> solve() const {
    std::array<bool, N> used;
    used.fill(true);
    while (true) {
      const std::array<double, N> x = solve(used);
      // Latencies and inverse rates of these fits cannot be negative: noise made one so.
      const auto negative = std::find_if(x.begin(), x.end(), [](double v) { return !(v >= 0); });
      if (negative == x.end()) return x;
      used[static_cast<std::size_t>(negative - x.begin())] = false;
    }
  }
  Residual residual(const std::array<double, N>& x) const {
    std::vector<double> relative;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      double fitted = 0;
      for (std::size_t j = 0; j < N; ++j) fitted += rows_[i][j] * x[j];
      relative.push_back(std::abs(fitted - times_[i]) / times_[i]);
    }
    return residual_of(relative);
  }

 private:
  std::array<double, N> solve(const std::array<bool, N>& used) const {
    const auto columns = static_cast<Eigen::Index>(std::count(used.begin(), used.end(), true));
    std::array<double, N> x{};
    if (columns == 0) return x;
    // Each column by its own scale: latencies are 1e-6 and inverse rates 1e-11.
    Eigen::MatrixXd a(static_cast<Eigen::Index>(rows_.size()), columns);
    Eigen::Index column = 0;
    for (std::size_t j = 0; j < N; ++j) {
      if (!used[j]) continue;
      for (std::size_t i = 0; i < rows_.size(); ++i) a(static_cast<Eigen::Index>(i), column) = rows_[i][j] / times_[i];
      ++column;
    }
    Eigen::VectorXd scale = a.colwise().norm();
    for (double& s : scale) s = s > 0 ? s : 1;
    const Eigen::VectorXd ones = Eigen::VectorXd::Ones(a.rows());
    const Eigen::VectorXd y = (a * scale.cwiseInverse().asDiagonal()).colPivHouseholderQr().solve(ones);
    column = 0;
    for (std::size_t j = 0; j < N; ++j) {
      if (!used[j]) continue;
      x[j] = y(column) / scale(column);
      ++column;
    }
    return x;
  }

  std::vector<std::array<double, N>> rows_;
  std::vector<double> times_;
};

/// What flows of one size moved together, each way, in bytes per second.
struct Rates {
  double h2d = 0;
  double d2h = 0;
};

bool one_way(const FlowTime& flow) { return flow.h2d == 0 || flow.d2h == 0; }

}  // namespace

namespace {

InputError unfit(const std::string& what, const std::string& why) {
  return {{}, fmt::format("the measurements of {} fit no rate: {}", what, why), "measure again on a quieter machine"};
}

}  // namespace

LinkFit fit_link(std::span<const CopyTime> copies) {
  // Copies of one size and direction may have been measured several times: the median time counts.
  std::map<std::tuple<bool, std::int64_t, std::int64_t>, std::vector<double>> times;
  for (const CopyTime& copy : copies) {
    if (copy.pinned && !copy.mixed) times[{copy.to_device, copy.bytes.value, copy.calls}].push_back(copy.all.median);
  }
  Fit<3> fit;
  for (const auto& [what, seconds] : times) {
    const auto [to_device, size, calls] = what;
    const double bytes = static_cast<double>(size) * static_cast<double>(calls);
    fit.add({static_cast<double>(calls), to_device ? bytes : 0, to_device ? 0 : bytes}, median(seconds));
  }
  if (fit.empty()) throw unfit("copies alone", "there are none");
  const auto x = fit.solve();
  if (!(x[1] > 0 && x[2] > 0)) throw unfit("copies alone", "they take no longer for more bytes");
  return {.latency = {x[0]}, .h2d = {1 / x[1]}, .d2h = {1 / x[2]}, .residual = fit.residual(x)};
}

std::optional<BytesPerSecond> fit_pageable(std::span<const CopyTime> copies, bool to_device) {
  std::vector<double> rates;
  for (const CopyTime& copy : copies)
    if (!copy.pinned && copy.to_device == to_device)
      rates.push_back(as_double(copy.bytes) * static_cast<double>(copy.calls) / copy.all.median);
  if (rates.empty()) return std::nullopt;
  return BytesPerSecond{median(rates)};
}

std::optional<BothFit> fit_both(std::span<const FlowTime> flows, const LinkFit& link, Bytes least) {
  // GPUs measured one after another count alike.
  std::map<std::int64_t, std::vector<Rates>> by_size;
  for (const FlowTime& flow : flows) {
    if (flow.gpus != 1 || one_way(flow) || flow.bytes < least) continue;
    const double late = link.latency.value / as_double(flow.bytes);
    by_size[flow.bytes.value].push_back({1 / (flow.window / flow.h2d - late), 1 / (flow.window / flow.d2h - late)});
  }
  if (by_size.empty()) return std::nullopt;
  BothFit fit;
  std::vector<double> weights;
  const double most = link.h2d.value + link.d2h.value;
  for (const auto& [bytes, rates] : by_size) {
    std::vector<double> sums;
    std::vector<double> ratios;
    for (const Rates& r : rates) {
      sums.push_back(r.h2d + r.d2h);
      ratios.push_back(r.d2h / r.h2d);
    }
    fit.by_size.push_back({{bytes}, {std::min(median(sums), most)}});
    weights.push_back(median(ratios));
  }
  while (fit.by_size.size() > kMostSizes) fit.by_size.erase(fit.by_size.begin());
  fit.both = fit.by_size.back().rate;
  fit.d2h_weight = median(weights);
  fit.least_weight = *std::min_element(weights.begin(), weights.end());
  fit.most_weight = *std::max_element(weights.begin(), weights.end());

  std::vector<double> relative;
  for (const FlowTime& flow : flows) {
    if (flow.gpus != 1 || one_way(flow) || flow.bytes < least) continue;
    const Steady steady = steady_rates(link, fit, flow.bytes);
    relative.push_back(std::abs(steady.h2d * flow.window / flow.h2d - 1));
    relative.push_back(std::abs(steady.d2h * flow.window / flow.d2h - 1));
  }
  fit.residual = residual_of(relative);
  return fit;
}

Steady steady_rates(const LinkFit& link, const BothFit& both, Bytes bytes) {
  double sum = both.both.value;
  for (auto size = both.by_size.rbegin(); size != both.by_size.rend(); ++size)
    if (bytes <= size->bytes) sum = size->rate.value;
  // Weighted max-min: a direction at its own limit leaves the rest to the other.
  double d2h = std::min(sum * both.d2h_weight / (1 + both.d2h_weight), link.d2h.value);
  const double h2d = std::min(sum - d2h, link.h2d.value);
  d2h = std::min(sum - h2d, link.d2h.value);
  const double late = link.latency.value / as_double(bytes);
  return {.h2d = 1 / (1 / h2d + late), .d2h = 1 / (1 / d2h + late)};
}

std::optional<HostFit> fit_host(std::span<const FlowTime> flows, std::int64_t gpus) {
  struct Shape {
    std::int64_t bytes;
    int ways;  // 1: h2d, 2: d2h, 3: both
    auto operator<=>(const Shape&) const = default;
  };
  std::map<Shape, double> sums;  // over GPUs and repeats
  std::map<Shape, double> repeats;
  for (const FlowTime& flow : flows) {
    if (flow.gpus != gpus) continue;
    const Shape shape{flow.bytes.value, (flow.h2d > 0 ? 1 : 0) + (flow.d2h > 0 ? 2 : 0)};
    sums[shape] += (flow.h2d + flow.d2h) / flow.window;
    repeats[shape] += 1 / static_cast<double>(gpus);
  }
  std::optional<double> least_way;
  std::optional<double> most_both;
  for (const auto& [shape, all] : sums) {
    const double sum = all / repeats[shape];
    if (shape.ways == 3)
      most_both = std::max(most_both.value_or(sum), sum);
    else
      least_way = std::min(least_way.value_or(sum), sum);
  }
  if (!least_way || !most_both) return std::nullopt;
  return HostFit{.one_way = {*least_way}, .both = {*most_both}};
}

std::optional<RateFit> fit_kernels(std::span<const KernelTime> kernels, std::span<const std::string_view> what) {
  std::vector<const KernelTime*> chosen;
  for (const KernelTime& kernel : kernels)
    if (std::find(what.begin(), what.end(), kernel.what) != what.end()) chosen.push_back(&kernel);
  const bool sizes = std::any_of(chosen.begin(), chosen.end(),
                                 [&](const KernelTime* kernel) { return kernel->bytes != chosen.front()->bytes; });
  Fit<2> fit;
  for (const KernelTime* kernel : chosen) fit.add({sizes ? 1.0 : 0.0, as_double(kernel->bytes)}, kernel->each.median);
  if (fit.empty()) return std::nullopt;
  const auto x = fit.solve();
  if (!(x[1] > 0)) throw unfit(chosen.front()->what, "it takes no longer for more bytes");
  return RateFit{.floor = {x[0]}, .rate = {1 / x[1]}, .residual = fit.residual(x)};
}

std::optional<PinFit> fit_pins(std::span<const PinTime> pins, std::string_view what) {
  Fit<2> fit;
  for (const PinTime& pin : pins) {
    if (pin.what != what) continue;
    const auto calls = static_cast<double>(pin.calls);
    fit.add({calls, calls * as_double(pin.bytes) / as_double(1_GiB)}, pin.seconds);
  }
  if (fit.empty()) return std::nullopt;
  const auto x = fit.solve();
  return PinFit{.call = {x[0]}, .seconds_per_gib = x[1], .residual = fit.residual(x)};
}

namespace {

/// Bytes that cross the bus of each GPU: passes (n - 1) / n * S.
double on_bus(const CollectiveRun& run) {
  const auto n = static_cast<double>(run.members);
  return (run.work == Work::all_reduce ? 2 : 1) * (n - 1) / n * as_double(run.bytes);
}

}  // namespace

std::optional<BusFit> fit_bus(std::span<const CollectiveRun> runs, Bytes least) {
  Fit<2> fit;
  for (const CollectiveRun& run : runs)
    if (run.link_use == 0 && run.bytes >= least) fit.add({1, on_bus(run)}, run.each.median);
  if (fit.empty()) return std::nullopt;
  const auto x = fit.solve();
  if (!(x[1] > 0)) throw unfit("collectives", "they take no longer for more bytes");
  return BusFit{.floor = {x[0]}, .bus = {1 / x[1]}, .residual = fit.residual(x)};
}

std::optional<double> fit_interference(std::span<const CollectiveRun> runs, Seconds floor) {
  std::vector<double> found;
  for (const CollectiveRun& beside : runs) {
    if (beside.link_use == 0) continue;
    for (const CollectiveRun& alone : runs) {
      if (alone.link_use != 0 || alone.work != beside.work || alone.bytes != beside.bytes) continue;
      // rate beside / rate alone = 1 - interference * use
      const double kept = (alone.each.median - floor.value) / (beside.each.median - floor.value);
      found.push_back(std::clamp((1 - kept) / beside.link_use, 0.0, 1.0));
    }
  }
  if (found.empty()) return std::nullopt;
  return median(found);
}

double moved_by(std::span<const double> times, double step, double at) {
  EBB_ASSERT(!times.empty() && at >= times.front() && at <= times.back());
  const auto after = std::upper_bound(times.begin(), times.end(), at);
  const auto k = static_cast<double>(after - times.begin());  // marks reached
  if (after == times.end()) return k * step;
  const double gone = (at - *(after - 1)) / (*after - *(after - 1));
  return (k + gone) * step;
}

}  // namespace ebb::replay
