"""Gathers what tests/gpu/life left in a directory into life.json, and prints it as tables.

    life_table.py OUT

Exit 0 when every small life was equivalent and every large run gave resident's numbers, loss, norm and digest at every
step, before and after its resume.
"""

import glob
import json
import os
import sys


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def name_of(path, prefix):
    return os.path.basename(path)[len(prefix) : -len(".json")]


def small_lives(out):
    lives = []
    for path in sorted(glob.glob(os.path.join(out, "small-*.json"))):
        if os.path.getsize(path) == 0:  # the message is in the .txt beside it
            lives.append({"name": name_of(path, "small-"), "equivalent": False})
            continue
        life = load(path)
        keys = ("policy", "equivalent", "verdict", "ranks", "other_ranks", "orders", "parts", "provenance")
        lives.append({"name": name_of(path, "small-"), **{key: life[key] for key in keys}})
    return lives


def highest(peaks):
    """Each part once, at its highest; of all ranks the highest rank's."""
    parts = {}
    for peak in peaks:
        known = parts.get(peak["part"])
        if known is None or peak["live"] > known["live"]:
            parts[peak["part"]] = {"live": peak["live"], "planned": peak["planned"]}
    return parts


def numbers_of(run):
    steps = []
    for rank in run["ranks"]:
        steps.append([(s["step"], s["loss"], s["sum_of_squares"], s["digest"]) for s in rank["steps"]])
    return steps


def large_runs(out):
    runs = []
    for path in sorted(glob.glob(os.path.join(out, "large-*.json"))):
        name = name_of(path, "large-")
        resumed_path = os.path.join(out, f"large-{name}-resumed.json")
        if name.endswith("-resumed") or os.path.getsize(path) == 0 or not os.path.exists(resumed_path):
            continue
        if os.path.getsize(resumed_path) == 0:
            continue
        run, resumed = load(path), load(resumed_path)
        ranks = run["ranks"] + resumed["ranks"]
        one = {
            "policy": name,
            "parts": highest([peak for rank in ranks for peak in rank["peaks"]]),
            "driver_peak": max(rank["memory"].get("driver_peak", 0) for rank in ranks),
            "save": [c for c in run["checkpoints"] if c["saved"]][-1],
            "load": [c for c in resumed["checkpoints"] if not c["saved"]][-1],
            "storage": run.get("storage"),
            "numbers": numbers_of(run) + numbers_of(resumed),
            "provenance": run["provenance"],
        }
        if one["storage"]:
            one["save_of_storage"] = one["storage"]["share_of_save"]
        runs.append(one)
    return runs


def print_large(runs):
    for run in runs:
        print(f"\n{run['policy']}: driver peak {run['driver_peak'] / 2**30:.2f} GiB")
        for part, peak in run["parts"].items():
            same = "as planned" if peak["live"] == peak["planned"] else "NOT AS PLANNED"
            print(f"  {part:<12} {peak['live'] / 2**30:9.3f} GiB live  {peak['planned'] / 2**30:9.3f} planned  {same}")
        for what in ("save", "load"):
            figures = run[what]
            print(f"  {what}: {figures['bytes'] / 1e9:.2f} GB in {figures['seconds']:.2f} s = {figures['bytes_per_s'] / 1e9:.2f} GB/s")
        if run["storage"]:
            before, after = (rate["bytes_per_s"] / 1e9 for rate in run["storage"]["plain_writes"])
            print(f"  plain large writes: {before:.2f} GB/s before the save, {after:.2f} after it; the save reached "
                  f"{100 * run['save_of_storage']:.1f} % of their mean")


def main():
    out = sys.argv[1]
    small, large = small_lives(out), large_runs(out)
    resident = next((run["numbers"] for run in large if run["policy"] == "resident"), None)
    for run in large:
        run["equal_to_resident"] = None if resident is None else run.pop("numbers") == resident
        run.pop("numbers", None)
    with open(os.path.join(out, "life.json"), "w", encoding="utf-8") as file:
        json.dump({"small": small, "large": large}, file, indent=1)
        file.write("\n")
    bad = [life["name"] for life in small if not life["equivalent"]]
    bad += [run["policy"] for run in large if run["equal_to_resident"] is False]
    bad += [run["policy"] for run in large if any(p["live"] != p["planned"] for p in run["parts"].values())]
    print(f"small lives: {len(small)}, equivalent: {sum(life['equivalent'] for life in small)}")
    print_large(large)
    for name in bad:
        print(f"NOT equivalent: {name}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
