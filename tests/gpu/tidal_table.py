"""The tables of what tests/gpu/tidal left in a directory, in Markdown.

    tidal_table.py OUT

For each shape and policy the peak and the step, predicted and measured (the median of all repeats); for tidal the time
exposed, which is its step less resident's step without its optimizer, all measured, beside the fluid bound. Exit 1 when
live bytes differ from the plan's anywhere, tidal's peak is more than 1 % above chunked's, or a prediction of the whole
step is more than 5 % off.
"""

import glob
import json
import os
import statistics
import sys

POLICIES = ("resident", "chunked", "pipelined", "tidal")


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class Run:
    def __init__(self, out, name):
        predicted, measured = (load(os.path.join(out, f"{name}.{kind}.json")) for kind in ("predicted", "measured"))
        one, other = predicted["ranks"][0], measured["ranks"][0]
        self.name = name
        self.pieces = measured["candidate"]["chunk_numel"]
        self.predicted = one["steps_ps"][0] / 1e12
        self.steps = [ps / 1e12 for ps in other["steps_ps"]]
        self.step = statistics.median(self.steps)
        self.optimizer = statistics.median(other["updates_ps"]) / 1e12
        self.peak = other["memory"]["live_peak"]
        self.driver = other["memory"].get("driver_peak")
        self.live_equal = all(
            one["memory"][key] == other["memory"][key] for key in ("live_peak", "live_by_phase", "pinned", "pageable")
        )

    @property
    def off(self):
        return self.step / self.predicted - 1

    def row(self):
        return (
            f"| `{self.name}` | {self.peak / 2**30:.2f} GiB | {self.predicted:.4f} s | {self.step:.4f} s "
            f"({min(self.steps):.4f} to {max(self.steps):.4f}) | {100 * self.off:+.1f} % | {self.optimizer:.4f} s "
            f"| {'equal' if self.live_equal else 'DIFFER'} |"
        )


def main(out):
    wrong = []

    def check(holds, text):
        if not holds:
            wrong.append(text)

    print("| run | peak | predicted | measured | off | optimizer step | live bytes |")
    print("|---|---|---|---|---|---|---|")
    names = sorted(os.path.basename(path)[: -len(".measured.json")] for path in glob.glob(f"{out}/*.measured.json"))
    runs = {name: Run(out, name) for name in names}
    for run in runs.values():
        print(run.row())
        check(run.live_equal, f"{run.name}: live bytes differ")
        check(abs(run.off) <= 0.05, f"{run.name}: {100 * run.off:+.1f} %")
    print()
    print("| shape | exposed | bound | above it | even bound | whole step beside resident's | peak beside chunked's |")
    print("|---|---|---|---|---|---|---|")
    for shape in sorted({name.split("-")[0] for name in names}):
        if not all(f"{shape}-{policy}" in runs for policy in POLICIES):
            continue
        resident, chunked, _, tidal = (runs[f"{shape}-{policy}"] for policy in POLICIES)
        tide = load(os.path.join(out, f"{shape}.explain.json"))["explanation"]["tide"]
        exposed = tidal.step - (resident.step - resident.optimizer)
        bound = tide["bound_seconds"]
        print(
            f"| ({shape}) | {exposed:.4f} s | {bound:.4f} s | {100 * (exposed / bound - 1):+.1f} % "
            f"| {tide['even_bound_seconds']:.4f} s | {100 * (tidal.step / resident.step - 1):+.1f} % "
            f"| {100 * (tidal.peak / chunked.peak - 1):+.2f} % |"
        )
        check(tidal.peak <= 1.01 * chunked.peak, f"({shape}): tidal's peak is above chunked's")
    for text in wrong:
        print("WRONG:", text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
