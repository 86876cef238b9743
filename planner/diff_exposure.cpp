#include "planner/diff_exposure.hpp"

#include <algorithm>

#include "models/errors.hpp"

namespace ebb {

namespace {

constexpr std::size_t index(OpClass cls) { return static_cast<std::size_t>(cls); }

OpClass class_of_work(Work work) {
  switch (work) {
    case Work::adam:
      return OpClass::adam;
    case Work::adam_foreach:
      return OpClass::adam_foreach;
    case Work::cast:
      return OpClass::cast;
    case Work::all_gather:
      return OpClass::all_gather;
    case Work::reduce_scatter:
      return OpClass::reduce_scatter;
    case Work::all_reduce:
      return OpClass::all_reduce;
    case Work::all_to_all:
      return OpClass::all_to_all;
    case Work::cpu_adam:
      return OpClass::cpu_adam;
    case Work::chunk_overhead:
      return OpClass::chunk_overhead;
    case Work::tensor_scan:
      return OpClass::tensor_scan;
    default:
      return OpClass::none;
  }
}

struct Edge {
  Ticks at;
  bool opens = false;
  OpClass cls = OpClass::none;
};

/// Begins and ends of what takes time in the window, in time order.
std::vector<Edge> edges_of(std::span<const OpSpan> ops, Window window) {
  std::vector<Edge> edges;
  for (const OpSpan& op : ops) {
    const OpClass cls = class_of(op);
    const Ticks begin = std::max(op.start, window.begin);
    const Ticks end = std::min(op.end, window.end);
    if (cls == OpClass::none || begin >= end) continue;
    edges.push_back({begin, true, cls});
    edges.push_back({end, false, cls});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });
  return edges;
}

using Running = std::array<std::int64_t, kOpClasses>;

OpClass charged(const Running& running) {
  if (running[index(OpClass::compute)] == 0 && running[index(OpClass::copies_in)] > 0 &&
      running[index(OpClass::copies_out)] > 0)
    return OpClass::copies_both;
  for (std::size_t cls = 0; cls < kOpClasses; ++cls)
    if (running[cls] > 0) return static_cast<OpClass>(cls);
  return OpClass::none;
}

/// What nothing runs for: the class of the next edge, which opens an op.
OpClass wait_for(OpClass next) {
  if (next == OpClass::copies_in || next == OpClass::copies_out) return OpClass::wait_copy;
  if (next >= OpClass::all_gather && next <= OpClass::all_to_all) return OpClass::wait_collective;
  if (next >= OpClass::adam && next <= OpClass::norm_clip) return OpClass::wait_kernel;
  return OpClass::wait_host;
}

double seconds(Ticks t) { return to_seconds(t).value; }

/// When at least one copy of a direction runs, as a function that can be integrated.
class Union {
 public:
  Union(std::span<const OpSpan> ops, OpKind kind) {
    for (const OpSpan& op : ops)
      if (op.kind == kind && op.end > op.start) parts_.push_back({op.start, op.end});
    std::sort(parts_.begin(), parts_.end(), [](const Window& a, const Window& b) { return a.begin < b.begin; });
    std::size_t last = 0;
    for (std::size_t i = 1; i < parts_.size(); ++i) {
      if (parts_[i].begin <= parts_[last].end)
        parts_[last].end = std::max(parts_[last].end, parts_[i].end);
      else
        parts_[++last] = parts_[i];
    }
    if (!parts_.empty()) parts_.resize(last + 1);
    before_.push_back({0});
    for (const Window& part : parts_) before_.push_back(before_.back() + (part.end - part.begin));
  }

  /// Time of it in [0, t].
  Ticks until(Ticks t) const {
    const auto after =
        std::upper_bound(parts_.begin(), parts_.end(), t, [](Ticks at, const Window& part) { return at < part.begin; });
    const auto count = static_cast<std::size_t>(after - parts_.begin());
    if (count == 0) return {0};
    const Window& part = parts_[count - 1];
    return before_[count - 1] + (std::min(t, part.end) - part.begin);
  }

 private:
  std::vector<Window> parts_;
  std::vector<Ticks> before_;
};

}  // namespace

std::string_view name_of(OpClass cls) {
  constexpr std::string_view kNames[] = {"compute",
                                         "copies both ways",
                                         "copies to device",
                                         "copies from device",
                                         "all-gather",
                                         "reduce-scatter",
                                         "all-reduce",
                                         "all-to-all",
                                         "Adam",
                                         "Adam, unfused",
                                         "casts",
                                         "norm, clip, zero",
                                         "Adam on the host",
                                         "chunk overhead",
                                         "tensor scans",
                                         "other host work",
                                         "waits: launches",
                                         "waits: copies",
                                         "waits: collectives",
                                         "waits: host"};
  static_assert(std::size(kNames) == kOpClasses);
  EBB_ASSERT(cls != OpClass::none);
  return kNames[index(cls)];
}

OpClass class_of(const OpSpan& op) {
  switch (op.kind) {
    case OpKind::allocate:
    case OpKind::release:
    case OpKind::host_wait:
      return OpClass::none;
    case OpKind::copy_h2d:
      return OpClass::copies_in;
    case OpKind::copy_d2h:
      return OpClass::copies_out;
    case OpKind::compute:
      return OpClass::compute;
    case OpKind::collective: {
      const OpClass cls = class_of_work(op.work);
      return cls >= OpClass::all_gather && cls <= OpClass::all_to_all ? cls : OpClass::all_reduce;
    }
    case OpKind::kernel: {
      const OpClass cls = class_of_work(op.work);
      return cls >= OpClass::adam && cls <= OpClass::cast ? cls : OpClass::norm_clip;
    }
    case OpKind::host_work: {
      const OpClass cls = class_of_work(op.work);
      return cls >= OpClass::cpu_adam && cls <= OpClass::tensor_scan ? cls : OpClass::other_host;
    }
  }
  return OpClass::none;
}

Exposure exposure_of(std::span<const OpSpan> ops, Window window) {
  Exposure result;
  Running running{};
  Ticks now = window.begin;
  const auto pass = [&](Ticks to, OpClass next) {
    const double length = seconds(to - now);
    if (length <= 0) return;
    OpClass cls = charged(running);
    if (cls == OpClass::none) cls = wait_for(next);
    result.exposed[index(cls)] += length;
    for (std::size_t c = 0; c < kOpClasses; ++c)
      if (running[c] > 0) result.busy[c] += length;
    if (running[index(OpClass::copies_in)] > 0 && running[index(OpClass::copies_out)] > 0)
      result.busy[index(OpClass::copies_both)] += length;
    now = to;
  };
  for (const Edge& edge : edges_of(ops, window)) {
    pass(edge.at, edge.cls);
    running[index(edge.cls)] += edge.opens ? 1 : -1;
  }
  pass(window.end, OpClass::none);
  return result;
}

Window step_window(std::span<const OpSpan> ops) {
  Window window;
  for (const OpSpan& op : ops) window.end = std::max(window.end, op.end);
  return window;
}

std::vector<std::pair<Phase, Window>> phase_windows(std::span<const OpSpan> ops) {
  std::vector<std::pair<Phase, Window>> windows;
  for (const OpSpan& op : ops) {
    auto known = std::find_if(windows.begin(), windows.end(), [&](const auto& w) { return w.first == op.phase; });
    if (known == windows.end()) known = windows.insert(windows.end(), {op.phase, {}});
    known->second.end = std::max(known->second.end, op.end);
  }
  Ticks end{0};
  for (auto& [phase, window] : windows) {
    window.begin = end;
    end = window.end = std::max(end, window.end);
  }
  return windows;
}

CopyRegimes copy_regimes(std::span<const OpSpan> ops, OpKind direction) {
  const Union other(ops, direction == OpKind::copy_h2d ? OpKind::copy_d2h : OpKind::copy_h2d);
  // Normal equations of bytes = alone * a + both * b, every copy weighing alike in relative error.
  double aa = 0;
  double ab = 0;
  double bb = 0;
  double a_bytes = 0;
  double b_bytes = 0;
  CopyRegimes result;
  double bytes = 0;
  for (const OpSpan& op : ops) {
    if (op.kind != direction || op.end <= op.start || op.bytes.value == 0) continue;
    const double both = seconds(other.until(op.end) - other.until(op.start));
    const double alone = seconds(op.end - op.start) - both;
    const double weight = 1 / seconds(op.end - op.start);
    const auto moved = static_cast<double>(op.bytes.value);
    aa += weight * alone * alone;
    ab += weight * alone * both;
    bb += weight * both * both;
    a_bytes += weight * alone * moved;
    b_bytes += weight * both * moved;
    result.seconds_alone += alone;
    result.seconds_both += both;
    bytes += moved;
  }
  constexpr double kTooLittle = 0.02;
  const double all = result.seconds_alone + result.seconds_both;
  if (all <= 0) return result;
  const double determinant = aa * bb - ab * ab;
  if (result.seconds_both < kTooLittle * all) {
    result.alone = bytes / all;
  } else if (result.seconds_alone < kTooLittle * all) {
    result.both = bytes / all;
  } else if (determinant < 1e-6 * aa * bb) {
    result.alone = result.both = bytes / all;
  } else {
    result.alone = std::max(0.0, (bb * a_bytes - ab * b_bytes) / determinant);
    result.both = std::max(0.0, (aa * b_bytes - ab * a_bytes) / determinant);
  }
  return result;
}

}  // namespace ebb
