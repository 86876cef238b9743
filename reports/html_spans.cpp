// Level of detail: a timeline with more spans than a page should hold.
//
// Neighbours on one lane whose lengths and whose gap are below a grain become one span; the grain doubles until few
// enough are left. Ops of one kind and phase join first; where lanes alternate between kinds (Adam, cast, Adam, ...),
// any join, and the longest of them lends its kind. A joined span keeps its first op, counts its ops and adds up their
// bytes; gaps inside it are drawn as busy, each below the grain.
#include <algorithm>

#include "models/errors.hpp"
#include "reports/html.hpp"

namespace ebb::reports {

namespace {

/// A span that may be joined already, and the longest op in it.
struct Joined {
  HtmlSpan span;
  Ticks longest{0};
};

bool short_neighbours(const HtmlSpan& a, const HtmlSpan& b, Ticks grain) {
  return a.stream == b.stream && a.lane == b.lane && b.start - a.end < grain && b.end - b.start < grain &&
         a.end - a.start < grain;
}

void join(Joined& a, const Joined& b) {
  a.span.ops += b.span.ops;
  a.span.bytes += b.span.bytes;
  a.span.end = std::max(a.span.end, b.span.end);
  if (a.span.chunk != b.span.chunk) a.span.chunk = -1;
  if (b.longest <= a.longest) return;
  a.longest = b.longest;
  a.span.kind = b.span.kind;
  a.span.phase = b.span.phase;
}

std::vector<Joined> joined_at(const std::vector<Joined>& spans, Ticks grain, bool any_kind) {
  std::vector<Joined> fewer;
  for (const Joined& next : spans) {
    const bool like =
        !fewer.empty() &&
        (any_kind || (fewer.back().span.kind == next.span.kind && fewer.back().span.phase == next.span.phase));
    if (like && short_neighbours(fewer.back().span, next.span, grain))
      join(fewer.back(), next);
    else
      fewer.push_back(next);
  }
  return fewer;
}

}  // namespace

std::vector<HtmlSpan> joined_spans(const std::vector<HtmlSpan>& spans, std::size_t most) {
  EBB_ASSERT(most >= 1'000);  // more than there are lanes
  if (spans.size() <= most) return spans;
  std::vector<Joined> fewer;
  Ticks end{1};
  for (const HtmlSpan& span : spans) {
    fewer.push_back({span, span.end - span.start});
    end = std::max(end, span.end);
  }
  for (Ticks grain{1'000'000}; fewer.size() > most; grain.value *= 2) {
    fewer = joined_at(fewer, grain, false);
    if (fewer.size() > most) fewer = joined_at(fewer, grain, true);
  }
  std::vector<HtmlSpan> result;
  for (const Joined& one : fewer) result.push_back(one.span);
  return result;
}

}  // namespace ebb::reports
