#include "planner/tide_flow.hpp"

#include <algorithm>
#include <limits>

#include "models/errors.hpp"

namespace ebb {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// One direction's copy engine: copies in order, one at a time.
struct Lane {
  std::int64_t done = 0;
  bool busy = false;
  double wait = 0;   // seconds of latency that are left
  double bytes = 0;  // left after it

  bool flows() const { return busy && wait <= 0; }
  void begin(const TideFlow& flow) {
    busy = true;
    wait = flow.latency.value;
    bytes = flow.copy_bytes;
  }
  /// A copy that began earlier: `left` seconds are left of it at `rate`.
  void resume(const TideFlow& flow, double left, double rate) {
    busy = true;
    bytes = std::min(flow.copy_bytes, left * rate);
    wait = left - bytes / rate;
  }
  double ends_in(double rate) const {
    if (!busy) return kNever;
    return wait > 0 ? wait : bytes / rate;
  }
  /// `due`: this is the lane whose event the clock advances to, so that rounding leaves nothing behind.
  void advance(double dt, double rate, bool due) {
    if (!busy) return;
    if (wait > 0) {
      wait = due ? 0 : wait - dt;
      return;
    }
    bytes -= dt * rate;
    if (!due) return;
    busy = false;
    ++done;
  }
};

/// The update kernels, one at a time: the pieces in order, and the kept ones after `arrive` of them.
struct Updates {
  std::int64_t done = 0;
  bool kept_done = false;
  bool on_kept = false;
  double left = kNever;  // of the running one

  bool busy() const { return left < kNever; }
  void begin(const TideFlow& flow, std::int64_t arrived) {
    if (busy()) return;
    on_kept = !kept_done && done >= flow.arrive;
    const bool there = done < flow.arrive ? done != flow.late || arrived >= flow.arrive : done < arrived;
    if (on_kept) left = flow.kept.value;
    if (!on_kept && there) left = flow.update.value;
  }
  void advance(double dt, bool due) {
    left -= dt;
    if (!due) return;
    left = kNever;
    if (on_kept) kept_done = true;
    if (!on_kept) ++done;
  }
};

}  // namespace

Seconds step_time(const TideFlow& flow) {
  EBB_ASSERT(0 <= flow.arrive && flow.arrive <= flow.places && flow.places <= flow.pieces);
  EBB_ASSERT(flow.late < flow.arrive);
  EBB_ASSERT(0 <= flow.tail && flow.tail <= flow.places && (flow.places > 0 || flow.pieces == 0));
  const std::int64_t leaving = flow.pieces - flow.tail;
  // What a direction gets while the other moves too: half, or what the other cannot use.
  const double in_shared = std::min(flow.h2d, std::max(flow.both / 2, flow.both - flow.d2h));
  const double out_shared = std::min(flow.d2h, std::max(flow.both / 2, flow.both - flow.h2d));
  const double in_alone = std::min(flow.h2d, flow.both);
  const double out_alone = std::min(flow.d2h, flow.both);
  Lane in{.done = flow.arrive};
  if (flow.late >= 0) {
    --in.done;
    in.resume(flow, flow.late_by.value, in_alone);
  }
  Lane out;
  Updates updates;
  double now = 0;
  while (true) {
    if (!in.busy && in.done < flow.pieces && in.done - flow.places < out.done) in.begin(flow);
    updates.begin(flow, in.done);
    if (!out.busy && out.done < std::min(updates.done, leaving)) out.begin(flow);
    const bool shared = in.flows() && out.flows();
    const double in_rate = shared ? in_shared : in_alone;
    const double out_rate = shared ? out_shared : out_alone;
    const double in_end = in.ends_in(in_rate);
    const double out_end = out.ends_in(out_rate);
    const double dt = std::min({in_end, out_end, updates.left});
    if (dt == kNever) break;
    in.advance(dt, in_rate, in_end <= dt);
    out.advance(dt, out_rate, out_end <= dt);
    updates.advance(dt, updates.left <= dt);
    now += dt;
  }
  EBB_ASSERT(in.done == flow.pieces && out.done == leaving && updates.done == flow.pieces && updates.kept_done);
  return {now};
}

}  // namespace ebb
