#include "planner/tide_flow.hpp"

#include <algorithm>
#include <limits>

#include "models/errors.hpp"

namespace ebb {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// One direction's copy engine: copies in order, one at a time.
struct Lane {
  std::int64_t next = 0;  // the piece it copies, or copies next; all that are its before this one are done
  bool busy = false;
  double wait = 0;   // seconds of latency that are left
  double bytes = 0;  // left after it

  bool flows() const { return busy && wait <= 0; }
  void begin(const TideProblem& problem) {
    busy = true;
    wait = problem.latency.value;
    bytes = static_cast<double>(problem.piece.value);
  }
  /// A copy that began earlier: `left` seconds are left of it at `rate`.
  void resume(const TideProblem& problem, double left, double rate) {
    busy = true;
    bytes = std::min(static_cast<double>(problem.piece.value), left * rate);
    wait = left - bytes / rate;
  }
  double ends_in(double rate) const {
    if (!busy) return kNever;
    return wait > 0 ? wait : bytes / rate;
  }
  /// True when a copy ends. What ends first sets the clock, so that rounding leaves nothing behind.
  bool advance(double dt, double rate) {
    if (!busy) return false;
    const bool due = ends_in(rate) <= dt;
    if (wait > 0) {
      wait = due ? 0 : wait - dt;
      return false;
    }
    bytes -= dt * rate;
    busy = !due;
    return due;
  }
};

class Flow {
 public:
  Flow(const TideProblem& problem, const TideSchedule& schedule, Ticks late);
  double run();

 private:
  void find_next_in();
  void find_next_out();
  void begin_update();
  void advance(double dt);

  const TideProblem& p_;
  const TideSchedule& s_;
  std::int64_t late_ = -1;  // the piece whose copy runs when updates may begin; -1: none
  Lane in_;
  Lane out_;
  double in_rate_ = 0;  // now
  double out_rate_ = 0;
  std::int64_t updated_ = 0;
  std::int64_t kept_updated_ = 0;
  double update_left_ = kNever;  // of the one that runs; kNever: none
  bool update_of_kept_ = false;
};

Flow::Flow(const TideProblem& problem, const TideSchedule& schedule, Ticks late) : p_(problem), s_(schedule) {
  EBB_ASSERT(0 <= s_.arrive && s_.arrive <= s_.places && s_.places <= s_.moving);
  EBB_ASSERT(0 <= s_.tail && s_.tail <= s_.places && (s_.places > 0 || s_.moving == 0));
  find_next_in();
  find_next_out();
  if (late <= Ticks{0}) return;
  late_ = std::find(s_.ring.begin(), s_.ring.end(), s_.arrive - 1) - s_.ring.begin();
  in_.resume(p_, to_seconds(late).value, std::min(p_.h2d, p_.both).value);
}

void Flow::find_next_in() {
  while (in_.next < s_.moving && s_.arrives(in_.next)) ++in_.next;
}

void Flow::find_next_out() {
  while (out_.next < s_.moving && s_.stays(out_.next)) ++out_.next;
}

/// Updates run one at a time, the pieces in order and the kept ones at their places among them.
void Flow::begin_update() {
  if (update_left_ < kNever) return;
  const bool all = updated_ == s_.moving;
  update_of_kept_ = kept_updated_ < (all ? s_.kept : s_.kept_before(updated_));
  const bool there = !all && updated_ != late_ && (updated_ < in_.next || s_.arrives(updated_));
  if (update_of_kept_ || there) update_left_ = (p_.piece / p_.adam_state).value;
}

void Flow::advance(double dt) {
  if (in_.advance(dt, in_rate_)) {
    if (late_ < 0) ++in_.next;
    late_ = -1;
    find_next_in();
  }
  if (out_.advance(dt, out_rate_)) {
    ++out_.next;
    find_next_out();
  }
  const bool ends = update_left_ <= dt;
  update_left_ -= dt;
  if (!ends) return;
  update_left_ = kNever;
  ++(update_of_kept_ ? kept_updated_ : updated_);
}

double Flow::run() {
  const double h = p_.h2d.value;
  const double d = p_.d2h.value;
  const double both = p_.both.value;
  double now = 0;
  while (true) {
    if (!in_.busy && in_.next < s_.moving && in_.next - s_.places < out_.next) in_.begin(p_);
    begin_update();
    if (!out_.busy && out_.next < updated_) out_.begin(p_);
    // While both move, each gets half, or what the other cannot use.
    const bool shared = in_.flows() && out_.flows();
    in_rate_ = std::min(h, shared ? std::max(both / 2, both - d) : both);
    out_rate_ = std::min(d, shared ? std::max(both / 2, both - h) : both);
    const double dt = std::min({in_.ends_in(in_rate_), out_.ends_in(out_rate_), update_left_});
    if (dt == kNever) break;
    advance(dt);
    now += dt;
  }
  EBB_ASSERT(in_.next == s_.moving && out_.next == s_.moving && updated_ == s_.moving && kept_updated_ == s_.kept);
  return now;
}

}  // namespace

Seconds step_time(const TideProblem& problem, const TideSchedule& schedule, Ticks late) {
  return {Flow(problem, schedule, late).run()};
}

}  // namespace ebb
