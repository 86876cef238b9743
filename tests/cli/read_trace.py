#!/usr/bin/env python3
"""Traces that `ebb` writes, read by something that is not Ebb: Google's protoc with Perfetto's own field numbers, and
Python's JSON. Proves that both formats hold every op of the timeline file once, at its time, on the track of its stream,
with its phase, chunk and bytes; an arrow for each dependency between streams and no other; and the memory that follows
from the plan. Expected values come from the plan and timeline files alone.

read_trace.py EBB SOURCE_DIR. Exit 77 where protoc is missing, unless EBB_REQUIRE_TOOLS is set.
"""

import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from decimal import Decimal
from pathlib import Path


def decode(path, source):
    """The messages of the file by field name: each field a list. protoc shows fields that it does not know as numbers."""
    proto = source / "tests/data/perfetto/track_event.proto"
    command = ["protoc", f"-I{proto.parent}", "--decode=perfetto.protos.Trace", proto.name]
    with path.open("rb") as file:
        shown = subprocess.run(command, stdin=file, check=True, capture_output=True, text=True)
    assert shown.stderr == "", shown.stderr
    open_messages = [defaultdict(list)]
    for line in map(str.strip, shown.stdout.splitlines()):
        if line.endswith(" {"):
            inner = defaultdict(list)
            field = line[:-2]
            open_messages[-1][field].append(inner)
            open_messages.append(inner)
        elif line == "}":
            open_messages.pop()
        else:
            field, value = line.split(": ", 1)
            if value.startswith('"'):
                value = ast.literal_eval("b" + value).decode()
            elif value.lstrip("-").isdigit():
                value = int(value)
            open_messages[-1][field].append(value)
        assert not (line[0].isdigit()), "a field that Perfetto does not have: " + line
    assert len(open_messages) == 1
    return open_messages[0]


def one(message, field, otherwise=None):
    """The value of a field that is there at most once."""
    values = message[field]
    assert len(values) <= 1
    return values[0] if values else otherwise


class Trace:
    """What either format says: slices by (process, op), arrows between them, counters."""

    def __init__(self):
        self.slices = {}  # (process, op) -> (track, begin ns, end ns, name, category, arguments)
        self.arrows = set()  # (process, from op, to op)
        self.counters = defaultdict(list)  # (process, name) -> [(ns, bytes)]


def read_perfetto(path, source):
    raw = decode(path, source)
    assert set(raw) == {"packet"}
    trace = Trace()
    processes, threads, counters = {}, {}, {}
    events = []
    for number, packet in enumerate(raw["packet"]):
        assert one(packet, "trusted_packet_sequence_id") == 1
        assert one(packet, "sequence_flags", 0) == (1 if number == 0 else 0)
        event = one(packet, "track_event")
        if event is not None:
            events.append((one(packet, "timestamp"), number, event))
            continue
        track = one(packet, "track_descriptor")
        uuid = one(track, "uuid")
        assert uuid not in processes | threads | counters, "one descriptor a track"
        if track["process"]:
            process = one(track, "process")
            processes[uuid] = (one(process, "pid"), one(process, "process_name"))
            continue
        pid, process = processes[one(track, "parent_uuid")]
        if track["thread"]:
            thread = one(track, "thread")
            assert one(thread, "pid") == pid and one(thread, "tid") != pid
            threads[uuid] = (process, one(thread, "thread_name"))
        else:
            assert one(one(track, "counter"), "unit") == "UNIT_SIZE_BYTES"
            counters[uuid] = (process, one(track, "name"))
    assert len({pid for pid, _ in processes.values()}) == len(processes)
    assert len({name for _, name in processes.values()}) == len(processes)
    # As a reader does it: by time, in the order of the file where times are equal; slices as a stack on each track.
    open_slice, begun_arrows = {}, {}
    for ns, _, event in sorted(events, key=lambda e: e[:2]):
        uuid, kind = one(event, "track_uuid"), one(event, "type")
        if kind == "TYPE_COUNTER":
            trace.counters[counters[uuid]].append((ns, one(event, "counter_value")))
        elif kind == "TYPE_SLICE_BEGIN":
            assert uuid not in open_slice, "slices of one stream do not nest"
            arguments = {}
            for annotation in event["debug_annotations"]:
                name = one(annotation, "name")
                assert name not in arguments and sum(map(len, annotation.values())) == 2
                arguments[name] = one(annotation, "string_value" if annotation["string_value"] else "int_value")
            process, track = threads[uuid]
            op = arguments["op"]
            open_slice[uuid] = (process, op, (track, ns, one(event, "name"), one(event, "categories"), arguments))
            for flow in event["flow_ids"]:
                assert flow not in begun_arrows
                begun_arrows[flow] = (process, op)
            for flow in event["terminating_flow_ids"]:
                start_process, start = begun_arrows[flow]  # met before: an arrow's begin is no later than its end
                assert start_process == process
                trace.arrows.add((process, start, op))
        else:
            assert kind == "TYPE_SLICE_END"
            process, op, (track, begin, name, category, arguments) = open_slice.pop(uuid)
            assert (process, op) not in trace.slices
            trace.slices[process, op] = (track, begin, ns, name, category, arguments)
    assert not open_slice
    return trace


def nanoseconds(microseconds):
    ns = Decimal(microseconds) * 1000
    assert ns == int(ns)
    return int(ns)


def read_chrome(path):
    document = json.loads(path.read_text(), parse_float=Decimal)
    assert set(document) == {"displayTimeUnit", "otherData", "traceEvents"}
    trace = Trace()
    names, starts, ends, at = {}, {}, {}, {}
    for event in document["traceEvents"]:
        kind, pid = event["ph"], event["pid"]
        if kind == "M":
            assert event["name"] in ("process_name", "thread_name")
            key = pid if event["name"] == "process_name" else (pid, event["tid"])
            assert key not in names
            names[key] = event["args"]["name"]
        elif kind == "C":
            trace.counters[names[pid], event["name"]].append((nanoseconds(event["ts"]), event["args"]["bytes"]))
        elif kind == "X":
            begin = nanoseconds(event["ts"])
            key = (names[pid], event["args"]["op"])
            assert key not in trace.slices
            trace.slices[key] = (names[pid, event["tid"]], begin, begin + nanoseconds(event["dur"]), event["name"],
                                 event["cat"], event["args"])
            at[pid, event["tid"], begin] = key[1]  # the last that begins there; readers take it, too
            last = (names[pid], key[1], pid, event["tid"], begin)
        else:
            assert kind in "sf" and event.get("bp") == (None if kind == "s" else "e")
            # It follows the slice that it belongs to, and lies where that begins.
            assert last[2:] == (pid, event["tid"], nanoseconds(event["ts"]))
            (starts if kind == "s" else ends)[event["id"]] = last[:2]
    assert starts.keys() == ends.keys()
    trace.arrows = {(starts[i][0], starts[i][1], ends[i][1]) for i in starts}
    assert all(starts[i][0] == ends[i][0] for i in starts)
    return trace


def memory_of(plan, spans):
    """Samples of every curve, from what models/plan.hpp says of allocation and release."""
    initial = defaultdict(int)
    for buffer in plan["buffers"]:
        if buffer.get("initial"):
            initial[buffer["memory"]] += buffer["bytes"]
    changes = []  # (tick, op, curve, bytes)
    for i, (op, (start, end)) in enumerate(zip(plan["ops"], spans)):
        if op["kind"] not in ("allocate", "release"):
            continue
        buffer = plan["buffers"][op["buffer"]]
        sign = 1 if op["kind"] == "allocate" else -1
        when = start if sign == 1 else end
        back = max(end, spans[op["after"]][1]) if "after" in op else when
        if buffer["memory"] == "device":
            changes.append((when, i, "device memory, allocated", sign * buffer["bytes"]))
            changes.append((back, i, "device memory, not reusable", sign * buffer["bytes"]))
        else:
            changes.append((back, i, buffer["memory"] + " host memory", sign * buffer["bytes"]))
    curves = {"device memory, allocated": [(0, initial["device"])], "device memory, not reusable": [(0, initial["device"])],
              "pinned host memory": [(0, initial["pinned"])], "pageable host memory": [(0, initial["pageable"])]}
    for tick, _, curve, change in sorted(changes, key=lambda c: c[:2]):
        if change != 0:
            curves[curve].append(((tick + 500) // 1000, curves[curve][-1][1] + change))
    return {name: samples for name, samples in curves.items() if samples != [(0, 0)]}


def check_rank(trace, process, plan, ops):
    assert len(plan["ops"]) == len(ops) > 0
    for i, (op, span) in enumerate(zip(plan["ops"], ops)):
        track, begin, end, name, category, arguments = trace.slices[process, i]
        assert abs(begin * 1000 - span["start_ps"]) <= 500 and abs(end * 1000 - span["end_ps"]) <= 500, (process, i)
        stream = plan["streams"][op["stream"]]
        assert stream["kind"] == span["stream"]
        assert track == stream["name"] or track.startswith(stream["name"] + " ("), track
        assert category == span["phase"]
        work = span.get("work", span["phase"] if span["kind"] == "compute" else span["kind"])
        assert name == work, (name, work)
        expected = {"op": i, "kind": span["kind"], "phase": span["phase"], "start_ps": span["start_ps"],
                    "end_ps": span["end_ps"]}
        for key in ("chunk", "bytes", "calls", "members"):
            if key in span:
                expected[key] = span[key]
        if "buffer" in op:
            expected["buffer"] = plan["buffers"][op["buffer"]]["name"]
        assert arguments == expected, (arguments, expected)
    arrows = {(process, dep, i) for i, op in enumerate(plan["ops"]) for dep in op.get("deps", [])
              if plan["ops"][dep]["stream"] != op["stream"]}
    assert {a for a in trace.arrows if a[0] == process} == arrows
    spans = [(span["start_ps"], span["end_ps"]) for span in ops]
    counters = {name: samples for (owner, name), samples in trace.counters.items() if owner == process}
    assert counters == memory_of(plan, spans)
    return len(ops), len(arrows), sum(map(len, counters.values()))


def check_traces(traces, parts):
    """`parts`: (process, plan, ops of the timeline)."""
    for trace in traces:
        totals = [check_rank(trace, *part) for part in parts]
        assert len(trace.slices) == sum(t[0] for t in totals), "a slice that no timeline has"
        assert {process for process, _ in trace.slices} == {part[0] for part in parts}
    assert traces[0].slices == traces[1].slices
    assert traces[0].arrows == traces[1].arrows and traces[0].counters == traces[1].counters
    return tuple(map(sum, zip(*totals)))


def main():
    ebb, source = sys.argv[1], Path(sys.argv[2])
    if shutil.which("protoc") is None:
        print("read_trace: protoc is missing; apt-get install protobuf-compiler", file=sys.stderr)
        sys.exit(1 if os.environ.get("EBB_REQUIRE_TOOLS") else 77)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        runs = "tests/data/replay/h200-2026-11-30/"

        def written(*arguments):
            """Both traces, the plan and the timeline of one `ebb simulate`."""
            files = {kind: scratch / f"out-{kind}" for kind in ("plan.json", "timeline.json", "a.pftrace", "b.json")}
            for trace in ("a.pftrace", "b.json"):
                also = [] if "--life" in arguments else ["--timeline", files["timeline.json"]]
                subprocess.run([ebb, "simulate", *arguments, "-o", files["plan.json"], *also, "--trace", files[trace]],
                               check=True, cwd=source, stdout=subprocess.DEVNULL)
            traces = [read_perfetto(files["a.pftrace"], source), read_chrome(files["b.json"])]
            plans = json.loads(files["plan.json"].read_text())["ranks"]
            timeline = None if "--life" in arguments else json.loads(files["timeline.json"].read_text())["ranks"]
            return traces, plans, timeline

        cases = [["models/jobs/llama3-8b-hgx-h200.yaml", "--policy", "pipelined", "--chunk-numel", "1e8", "--slots", "3"],
                 ["models/jobs/llama3-8b-hgx-h200.yaml", "--policy", "chunked", "--chunk-numel", "1e8"],
                 ["models/jobs/mixtral-8x7b-hgx-h200.yaml", "--policy", "windowed", "--chunk-size-mb", "512"]]
        for case in cases:
            traces, plans, timeline = written(*case)
            assert len(plans) > 1
            for rank in timeline:
                process = f"rank {rank['rank']} (predicted)"
                if (process, "pageable host memory") not in traces[0].counters:
                    pinned = traces[0].counters.get((process, "pinned host memory"), [(0, 0)])
                    assert max(value for _, value in pinned) == rank["memory"]["pinned"]
            counts = check_traces(traces, [(f"rank {plan['rank']} (predicted)", plan, rank["ops"])
                                           for plan, rank in zip(plans, timeline)])
            print(*case, ":", len(plans), "ranks, ops, arrows, samples:", *counts)
            assert counts[1] > 0

        # Predicted beside measured, of one plan: the run of a real GPU in tests/data.
        for policy in (["chunked", "--chunk-numel", "100000000"], ["pipelined", "--chunk-numel", "4194304", "--slots", "4"]):
            run = runs + "replay-moe-" + "-".join(policy).replace("---", "-").replace("--", "-") + ".measured.json"
            case = ["tests/gpu/replay-moe.yaml", "--policy", *policy]
            traces, plans, timeline = written(*case, "--measured", run)
            measured = json.loads((source / run).read_text())["ranks"]
            parts = []
            for plan, rank, really in zip(plans, timeline, measured):
                parts += [(f"rank {plan['rank']} (predicted)", plan, rank["ops"]),
                          (f"rank {plan['rank']} (measured)", plan, really["ops"])]
            assert rank["ops"] != really["ops"]
            print(*case, ": ops, arrows, samples:", *check_traces(traces, parts))

        # Every part of a life is a process of its own.
        case = ["tests/gpu/replay-small.yaml", "--policy", "chunked", "--chunk-numel", "1e6", "--life"]
        traces, plans, _ = written(*case)
        names = {f"rank {p['rank']}{'' if p.get('part', 'step') == 'step' else ' ' + p['part']} (predicted)" for p in plans}
        for trace in traces:
            assert {process for process, _ in trace.slices} == names and len(names) == len(plans) > 5
        assert traces[0].slices == traces[1].slices and traces[0].counters == traces[1].counters
        print(*case, ":", len(plans), "parts")


main()
