#include "tests/planner/tide_executor.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

namespace ebb {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kTiny = 1e-9;  // seconds: the solver rounds each copy to a tick

enum class Where : unsigned char { host, arriving, waiting, updated, leaving, gone };

struct Copy {
  std::size_t piece = 0;
  double latency = 0;
  double bytes = 0;
  bool active = false;
};

class Executor {
 public:
  Executor(const TideProblem& problem, const TideSchedule& schedule) : p_(problem), s_(schedule) {}
  TideRun run();

 private:
  using Queue = std::vector<std::size_t>;

  bool well_formed();
  void complain(const std::string& text) {
    if (run_.problem.empty()) run_.problem = text + " at " + std::to_string(now_);
  }
  std::size_t place_of(std::size_t piece) const { return static_cast<std::size_t>(s_.place(static_cast<int>(piece))); }
  bool arrives(std::size_t piece) const { return s_.arrives(static_cast<std::int64_t>(piece)); }
  bool stays(std::size_t piece) const { return s_.stays(static_cast<std::int64_t>(piece)); }
  void rise();
  void fall();
  void step();
  void start_in();
  void start_out();
  double advance_to(double limit);
  void finish(Copy& copy, Where after);
  bool fits(Bytes room) const;

  const TideProblem& p_;
  const TideSchedule& s_;
  TideRun run_;
  double now_ = 0;
  std::vector<Where> where_;
  std::vector<int> holder_;  // by place: the piece, -1 when free
  Queue in_queue_;
  Queue out_queue_;
  std::size_t in_next_ = 0;
  std::size_t out_next_ = 0;
  Copy in_;
  Copy out_;
  bool in_step_ = false;
  Bytes room_{0};  // now
};

bool Executor::well_formed() {
  const std::int64_t moving = p_.pieces - s_.kept;
  if (s_.kept < 0 || moving < 0 || s_.moving != moving || s_.arrive < 0 || s_.tail < 0 || s_.arrive > moving ||
      s_.tail > moving)
    return false;
  if (s_.arrive > s_.places || s_.tail > s_.places || (moving > 0 && s_.places < 1)) return false;
  std::vector<std::int64_t> sorted = s_.ring;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::int64_t> all(static_cast<std::size_t>(s_.places));
  std::iota(all.begin(), all.end(), 0);
  return sorted == all;
}

/// The pieces on the device and the places they take fit, kept ones included. Places count from the far end: the
/// activations end where the highest taken place begins.
bool Executor::fits(Bytes room) const {
  std::int64_t end = 0;
  for (std::size_t place = 0; place < holder_.size(); ++place) {
    if (holder_[place] >= 0) end = static_cast<std::int64_t>(place) + 1;
  }
  return p_.piece * (s_.kept + end) <= room;
}

void Executor::start_in() {
  if (in_.active || in_next_ == in_queue_.size()) return;
  const std::size_t piece = in_queue_[in_next_];
  const std::size_t place = place_of(piece);
  if (holder_[place] >= 0) return;
  if (!in_step_ && p_.piece * (s_.kept + static_cast<std::int64_t>(place) + 1) > room_) return;
  holder_[place] = static_cast<int>(piece);
  where_[piece] = Where::arriving;
  in_ = {.piece = piece, .latency = p_.latency.value, .bytes = static_cast<double>(p_.piece.value), .active = true};
  ++in_next_;
}

void Executor::start_out() {
  if (out_.active || out_next_ == out_queue_.size()) return;
  const std::size_t piece = out_queue_[out_next_];
  if (where_[piece] != Where::updated) return;
  where_[piece] = Where::leaving;
  out_ = {.piece = piece, .latency = p_.latency.value, .bytes = static_cast<double>(p_.piece.value), .active = true};
  ++out_next_;
}

void Executor::finish(Copy& copy, Where after) {
  copy.active = false;
  where_[copy.piece] = after;
  if (after == Where::gone) holder_[place_of(copy.piece)] = -1;
}

/// Starts what can start and runs until a copy's latency or bytes end, or `limit`. Returns the time it got to.
double Executor::advance_to(double limit) {
  start_in();
  start_out();
  const double h = p_.h2d.value;
  const double d = p_.d2h.value;
  const double b = p_.both.value;
  double in_rate = std::min(h, b);
  double out_rate = std::min(d, b);
  if (in_.active && in_.latency <= 0 && out_.active && out_.latency <= 0 && h + d > b) {
    // Even shares; what one cannot use is the other's.
    in_rate = h <= b / 2 ? h : d <= b / 2 ? b - d : b / 2;
    out_rate = b - in_rate;
  }
  double until = limit;
  for (const auto& [copy, rate] : {std::pair{&in_, in_rate}, std::pair{&out_, out_rate}}) {
    if (copy->active) until = std::min(until, now_ + (copy->latency > 0 ? copy->latency : copy->bytes / rate));
  }
  if (until == kNever) return kNever;
  for (const auto& [copy, rate] : {std::pair{&in_, in_rate}, std::pair{&out_, out_rate}}) {
    if (!copy->active) continue;
    if (copy->latency > 0) {
      copy->latency -= until - now_;
      if (copy->latency < kTiny) copy->latency = 0;
    } else {
      copy->bytes -= (until - now_) * rate;
      if (copy->bytes < kTiny * rate) finish(*copy, copy == &in_ ? Where::waiting : Where::gone);
    }
  }
  now_ = until;
  return now_;
}

/// The rise: before it grows, the forward waits until what is needed has left.
void Executor::rise() {
  double waited = 0;
  for (const TideRoom& entry : p_.rise) {
    while (!fits(entry.room)) {
      const double before = now_;
      if (advance_to(kNever) == kNever) return complain("no room in the rise");
      waited += now_ - before;
    }
    const double end = waited + to_seconds(entry.until).value;
    while (now_ < end - kTiny) advance_to(end);
  }
  const double before = now_;
  while (out_.active) advance_to(kNever);
  run_.wait = waited + now_ - before;
}

void Executor::fall() {
  const double begin = now_;
  for (const TideRoom& entry : p_.fall) {
    room_ = entry.room;
    if (!fits(room_)) complain("no room in the fall");
    const double end = begin + to_seconds(entry.until).value;
    while (now_ < end - kTiny) advance_to(end);
  }
}

void Executor::step() {
  in_step_ = true;
  const double begin = now_;
  const std::size_t moving = where_.size();
  const double update = static_cast<double>(p_.piece.value) / p_.adam_state.value;
  in_queue_.clear();
  out_queue_.clear();
  in_next_ = out_next_ = 0;
  for (std::size_t k = 0; k < moving; ++k) {
    if (!arrives(k)) in_queue_.push_back(k);
    if (!stays(k)) out_queue_.push_back(k);
  }
  std::size_t updated = 0;
  std::int64_t kept_updated = 0;
  while (true) {
    if (!fits(p_.step_room)) complain("no room in the step");
    const bool kept_turn =
        kept_updated < (updated < moving ? s_.kept_before(static_cast<std::int64_t>(updated)) : s_.kept);
    if (kept_turn || (updated < moving && where_[updated] == Where::waiting)) {
      const double end = now_ + update;
      while (now_ < end - kTiny) advance_to(end);
      if (kept_turn) ++kept_updated;
      if (!kept_turn) where_[updated++] = Where::updated;
      continue;
    }
    if (advance_to(kNever) == kNever) break;
  }
  for (std::size_t k = 0; k < moving; ++k) {
    if (where_[k] != (stays(k) ? Where::updated : Where::gone)) complain("piece " + std::to_string(k) + " is stuck");
  }
  if (kept_updated != s_.kept) complain("a kept piece is not updated");
  run_.step = now_ - begin;
}

TideRun Executor::run() {
  if (!well_formed()) return {0, 0, "not a schedule"};
  const auto moving = static_cast<std::size_t>(p_.pieces - s_.kept);
  holder_.assign(static_cast<std::size_t>(s_.places), -1);
  where_.assign(moving, Where::gone);
  for (std::size_t k = 0; k < moving; ++k) {
    if (!stays(k)) continue;
    where_[k] = Where::updated;
    holder_[place_of(k)] = static_cast<int>(k);
    out_queue_.push_back(k);
  }
  if (static_cast<std::int64_t>(out_queue_.size()) != s_.tail) complain("more or fewer stay than it says");
  const auto by_place = [this](std::size_t a, std::size_t b) { return place_of(a) < place_of(b); };
  std::sort(out_queue_.begin(), out_queue_.end(), by_place);
  std::reverse(out_queue_.begin(), out_queue_.end());
  rise();
  if (std::count(where_.begin(), where_.end(), Where::gone) != static_cast<std::ptrdiff_t>(moving)) {
    complain("something is still here at the peak");
  }
  std::fill(where_.begin(), where_.end(), Where::host);
  for (std::size_t k = 0; k < moving; ++k) {
    if (arrives(k)) in_queue_.push_back(k);
  }
  if (static_cast<std::int64_t>(in_queue_.size()) != s_.arrive) complain("more or fewer arrive than it says");
  std::sort(in_queue_.begin(), in_queue_.end(), by_place);
  fall();
  if (in_next_ != in_queue_.size()) complain("late for the first update");
  step();
  return run_;
}

}  // namespace

TideRun execute_tide(const TideProblem& problem, const TideSchedule& schedule) {
  return Executor(problem, schedule).run();
}

}  // namespace ebb
