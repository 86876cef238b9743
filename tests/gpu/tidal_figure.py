"""A measured step as a picture: live device bytes above, what each engine does below.

    tidal_figure.py PLAN MEASURED TITLE > FIGURE.svg

PLAN: `ebb simulate JOB ... -o PLAN`. MEASURED: `ebb-replay run PLAN -o MEASURED`. Spans of one kind and phase that lie
closer than a pixel become one.
"""

import html
import json
import sys

WIDTH, LEFT, RIGHT = 960, 86, 14
CURVE_TOP, CURVE_HEIGHT, LANE_HEIGHT, LANE_GAP = 50, 170, 26, 8
LANES = (("computation", "compute"), ("in, from the host", "h2d"), ("out, to the host", "d2h"))
COLOURS = {
    ("compute", "forward"): "#9ecae1",
    ("compute", "backward"): "#4292c6",
    ("compute", "other"): "#756bb1",
    ("kernel", "step"): "#e6550d",
    ("kernel", "other"): "#756bb1",
    ("copy-h2d", "other"): "#31a354",
    ("copy-d2h", "other"): "#de2d26",
}


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def colour(op):
    return COLOURS.get((op["kind"], op["phase"]), COLOURS.get((op["kind"], "other")))


def live_curve(plan, spans):
    """(time, live bytes) after every allocation and release: device buffers, those of before the step included."""
    buffers = plan["buffers"]
    live = sum(b["bytes"] for b in buffers if b.get("initial") and b.get("memory", "device") == "device")
    events = []
    for op, span in zip(plan["ops"], spans):
        if op["kind"] in ("allocate", "release") and buffers[op["buffer"]].get("memory", "device") == "device":
            sign = 1 if op["kind"] == "allocate" else -1
            events.append((span["end_ps"], sign * buffers[op["buffer"]]["bytes"]))
    curve = [(0, live)]
    # What is released at a moment makes room for what is allocated then.
    for time, change in sorted(events):
        live += change
        curve.append((time, live))
    return curve


def merged(spans, pixel):
    bars = []
    for span in spans:
        if span["start_ps"] == span["end_ps"]:
            continue
        fill = colour(span)
        if bars and bars[-1][2] == fill and span["start_ps"] - bars[-1][1] < pixel:
            bars[-1][1] = span["end_ps"]
        else:
            bars.append([span["start_ps"], span["end_ps"], fill])
    return bars


class Picture:
    def __init__(self, length_ps, peak):
        self.scale = (WIDTH - LEFT - RIGHT) / length_ps
        self.length = length_ps
        self.peak = peak
        self.parts = []

    def x(self, time):
        return LEFT + time * self.scale

    def y(self, live):
        return CURVE_TOP + CURVE_HEIGHT * (1 - live / (1.08 * self.peak))

    def text(self, x, y, words, anchor="start", size=12):
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{html.escape(words)}</text>'
        )

    def curve(self, points, cap):
        path = [f"M{self.x(0):.1f},{self.y(0):.1f}L{self.x(0):.1f},{self.y(points[0][1]):.1f}"]
        for time, live in points:
            path.append(f"H{self.x(time):.1f}V{self.y(live):.1f}")
        path.append(f"H{self.x(self.length):.1f}V{self.y(0):.1f}Z")
        self.parts.append(f'<path d="{"".join(path)}" fill="#d9d9d9" stroke="#636363" stroke-width="0.7"/>')
        at = self.y(cap)
        self.parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="#252525" '
            'stroke-dasharray="5 3" stroke-width="1"/>'
        )
        self.text(WIDTH - RIGHT, at - 5, f"peak {cap / 2**30:.2f} GiB", "end")
        self.text(LEFT - 6, self.y(0), "0", "end")
        self.text(LEFT - 6, at + 4, f"{cap / 2**30:.1f} GiB", "end")

    def lane(self, row, name, bars):
        top = CURVE_TOP + CURVE_HEIGHT + 14 + row * (LANE_HEIGHT + LANE_GAP)
        first, _, second = name.partition(", ")
        self.text(LEFT - 6, top + (12 if second else 17), first, "end")
        if second:
            self.text(LEFT - 6, top + 24, second, "end", 10)
        for begin, end, fill in bars:
            width = max((end - begin) * self.scale, 0.4)
            self.parts.append(
                f'<rect x="{self.x(begin):.1f}" y="{top}" width="{width:.2f}" height="{LANE_HEIGHT}" fill="{fill}"/>'
            )

    def axis(self, rows):
        top = CURVE_TOP + CURVE_HEIGHT + 14 + rows * (LANE_HEIGHT + LANE_GAP)
        step = next(s for s in (10, 20, 50, 100, 200, 500, 1000) if self.length / 1e9 / s <= 14)
        for ms in range(0, int(self.length / 1e9) + 1, step):
            at = self.x(ms * 1e9)
            self.parts.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{CURVE_TOP}" y2="{top}" stroke="#bdbdbd" '
                              'stroke-width="0.4"/>')
            self.text(at, top + 12, f"{ms} ms", "middle", 11)
        return top + 12

    def legend(self, top):
        x = LEFT
        for words, fill in (
            ("forward", "#9ecae1"),
            ("backward", "#4292c6"),
            ("zero, norm, clip", "#756bb1"),
            ("Adam", "#e6550d"),
            ("copies in", "#31a354"),
            ("copies out", "#de2d26"),
            ("live device bytes", "#d9d9d9"),
        ):
            self.parts.append(f'<rect x="{x}" y="{top}" width="12" height="12" fill="{fill}"/>')
            self.text(x + 17, top + 10, words)
            x += 40 + 7 * len(words)


def main(plan_path, measured_path, title):
    plan = load(plan_path)
    plan = plan["ranks"][0]
    rank = load(measured_path)["ranks"][0]
    spans = rank["ops"]
    assert len(spans) == len(plan["ops"]), "the timeline is not of this plan"
    length = max(span["end_ps"] for span in spans)
    picture = Picture(length, rank["memory"]["live_peak"])
    picture.text(LEFT, 22, title, size=14)
    picture.text(LEFT, 40, "one step on an H200, as measured: what is live on the device, and what its engines do")
    picture.curve(live_curve(plan, spans), rank["memory"]["live_peak"])
    for row, (name, stream) in enumerate(LANES):
        ops = sorted((s for s in spans if s["stream"] == stream and colour(s)), key=lambda s: s["start_ps"])
        picture.lane(row, name, merged(ops, 0.6 / picture.scale))
    bottom = picture.axis(len(LANES)) + 12
    picture.legend(bottom)
    height = bottom + 24
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
          'font-family="DejaVu Sans, Arial, sans-serif" fill="#252525">')
    print(f'<rect width="{WIDTH}" height="{height:.0f}" fill="#ffffff"/>')
    print("\n".join(picture.parts))
    print("</svg>")


if __name__ == "__main__":
    main(*sys.argv[1:4])
