#!/usr/bin/env python3
"""Drives torch's CUDA caching allocator with seeded random sequences and writes what it counts after every call.

    python3 torch_allocator_trace.py OUT.jsonl          (one CUDA GPU; about a minute)

A line that is an object starts a sequence: name, seed, expandable (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,
in a process of its own), allowed (bytes; torch.cuda.set_per_process_memory_fraction), free (bytes the driver had free
at the start). A line that is an array is one call and its outcome:

    [op, id, bytes, stream, allocated / 512, reserved / 2 MiB]

    a  torch.empty(bytes) on the stream        o  the same, but it raised OutOfMemoryError
    f  the tensor goes                         w  the tensor goes after record_stream on the streams in the bit mask
    s  stream.synchronize()                       `stream`, each of which is busy until the next s on it (or e, or a
    e  torch.cuda.empty_cache()                   wait for the whole device inside a)
    z  end: bytes = segments or mappings the driver gave, stream = num_alloc_retries

"Busy" is a kernel that sleeps. Whether it still runs is asked of an event around every call; when it has ended by
itself, an s is written where that was seen. Pointers go to OUT.jsonl.pointers (one a line, for a).
"""
import json
import os
import random
import subprocess
import sys

import torch

MIB = 1 << 20
SLEEP_CYCLES = 40_000_000  # about 20 ms
BOUNDARIES = [1, 511, 512, 513, MIB - 1, MIB, MIB + 1, 2 * MIB, 10 * MIB - 512, 10 * MIB - 511, 10 * MIB, 10 * MIB + 1,
              11 * MIB, 12 * MIB, 19 * MIB - 1, 19 * MIB, 19 * MIB + 1, 20 * MIB, 20 * MIB + 1, 33 * MIB + 512]

EQUALS = {  # few sizes, so that many free blocks are equal and their addresses decide
    "repeated": [3, 70_000, 600_000, 3 * MIB, 7 * MIB, 16 * MIB, 48 * MIB],
    "twins": [3, 513, 4096, 70_000, 300_000, 600_000, 900_000],
    "layers": [4096, 4_194_304, 8_388_608, 12_582_912, 25_165_824, 33_554_432, 67_108_864],
}


def size_of(rng, kind):
    if kind == "mixed":
        kind = rng.choice(["tiny", "small", "middle", "large", "boundary"])
    if kind == "tiny":
        return rng.randint(1, 4096)
    if kind == "small":
        return rng.randint(1, MIB)
    if kind == "middle":
        return rng.randint(MIB + 1, 10 * MIB)
    if kind == "large":
        return int(10 * MIB * 30 ** rng.random())  # 10 to 300 MiB
    if kind == "boundary":
        return rng.choice(BOUNDARIES)
    return rng.choice(EQUALS[kind])


class Sequence:
    def __init__(self):
        self.out, self.pointers = [], []
        self.live, self.next_id = {}, 0
        self.streams = [torch.cuda.default_stream()] + STREAMS
        self.busy = {}  # stream index -> event behind the sleep
        self.synced = self.stats()["num_sync_all_streams"]

    def stats(self):
        return torch.cuda.memory_stats_as_nested_dict()

    def log(self, op, ident=0, size=0, stream=0):
        s = self.stats()
        if s["num_sync_all_streams"] != self.synced:
            self.synced = s["num_sync_all_streams"]
            self.busy.clear()
        allocated, reserved = (s[k]["all"]["current"] for k in ("allocated_bytes", "reserved_bytes"))
        assert allocated % 512 == 0 and reserved % (2 * MIB) == 0
        self.out.append([op, ident, size, stream, allocated // 512, reserved // (2 * MIB)])
        self.settle()

    def settle(self):
        """Streams whose kernel has ended by itself are busy no longer."""
        for stream in [s for s, event in self.busy.items() if event.query()]:
            del self.busy[stream]
            self.out.append(["s", 0, 0, stream] + self.out[-1][4:])

    def allocate(self, size, stream):
        ident, self.next_id = self.next_id, self.next_id + 1
        self.settle()
        try:
            with torch.cuda.stream(self.streams[stream]):
                self.live[ident] = (torch.empty(size, dtype=torch.uint8, device="cuda"), stream)
            self.log("a", ident, size, stream)
            self.pointers.append(self.live[ident][0].data_ptr())
        except torch.cuda.OutOfMemoryError:
            self.log("o", ident, size, stream)

    def free(self, ident):
        del self.live[ident]
        self.log("f", ident)

    def free_in_use(self, ident, users):
        tensor, stream = self.live.pop(ident)
        users = [u for u in users if u != stream]
        for user in users:
            if user not in self.busy:
                with torch.cuda.stream(self.streams[user]):
                    torch.cuda._sleep(SLEEP_CYCLES)
                    self.busy[user] = torch.cuda.Event()
                    self.busy[user].record()
            tensor.record_stream(self.streams[user])
        del tensor
        self.log("w", ident, 0, sum(1 << u for u in users))

    def synchronize(self, stream):
        self.busy.pop(stream, None)
        self.streams[stream].synchronize()
        self.log("s", 0, 0, stream)

    def empty_cache(self):
        torch.cuda.empty_cache()
        self.log("e")


def drive(seq, rng, calls, kind, streams, uses, empty, limit, ballast):
    """`limit`: live bytes kept below it most of the time; `uses`, `empty`: how often, 0 to 1."""
    if ballast:
        seq.allocate(ballast, 0)
    kept = set(seq.live)
    while len(seq.out) < calls:
        live = [i for i in seq.live if i not in kept]
        bytes_live = sum(seq.live[i][0].numel() for i in live)
        draw = rng.random()
        if draw < empty:
            seq.empty_cache()
        elif seq.busy and (draw < empty + 0.08 or len(live) < 2):
            seq.synchronize(rng.choice(sorted(seq.busy)))
        elif live and (bytes_live > limit or len(live) > 100 or rng.random() < 0.43):
            ident = rng.choice(live) if rng.random() < 0.7 else live[-1]
            if rng.random() < uses:
                seq.free_in_use(ident, rng.sample(range(streams), rng.randint(1, min(2, streams))))
            else:
                seq.free(ident)
        else:
            seq.allocate(size_of(rng, kind), rng.randrange(streams))
    for stream in sorted(seq.busy):
        seq.synchronize(stream)
    for ident in list(seq.live):
        seq.free(ident)
    seq.empty_cache()


def training(seq, rng, calls):
    """Steps that look like training: activations pile up, gradients come as they go, then temporaries."""
    while len(seq.out) < calls:
        activations = []
        for _ in range(rng.randint(8, 14)):
            before = set(seq.live)
            seq.allocate(size_of(rng, rng.choice(["large", "middle", "repeated"])), 0)
            activations += set(seq.live) - before
            seq.allocate(size_of(rng, "mixed"), 0)
            if seq.live:
                seq.free(max(seq.live))
        for ident in reversed(activations):
            seq.allocate(size_of(rng, "mixed"), rng.randrange(2))
            if ident in seq.live:
                seq.free(ident)
            if seq.live and rng.random() < 0.5:
                seq.free_in_use(max(seq.live), [1, 2])
        for stream in sorted(seq.busy):
            seq.synchronize(stream)
        for ident in list(seq.live):
            seq.free(ident)
    seq.empty_cache()


PLANS = [  # name, calls, kind of sizes, streams, uses, empty, limit in MiB, allowed in MiB (0: all), ballast
    ("mixed", 400, "mixed", 1, 0, 0.005, 4000, 0, 0),
    ("small", 250, "small", 2, 0, 0.01, 2000, 0, 0),
    ("large", 250, "large", 1, 0, 0.01, 3000, 0, 0),
    ("boundary", 400, "boundary", 2, 0, 0.01, 1000, 0, 0),
    ("repeated", 450, "repeated", 2, 0, 0.003, 2000, 0, 0),
    ("twins", 450, "twins", 1, 0, 0.003, 1000, 0, 0),
    ("layers", 450, "layers", 1, 0, 0.003, 2500, 0, 0),
    ("uses", 400, "mixed", 3, 0.4, 0.01, 3000, 0, 0),
    ("limit", 300, "mixed", 1, 0, 0, 900, 1001, 0),
    ("limit uses", 400, "mixed", 3, 0.3, 0, 900, 1001, 0),
    ("limit layers", 300, "layers", 2, 0.1, 0, 1500, 1501, 0),
    ("full", 250, "mixed", 2, 0, 0, 900, 0, 1),
]


def run(name, seed, allowed, body, lines, pointers):
    total = torch.cuda.mem_get_info()[1]
    fraction = allowed / total if allowed else 1.0
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(fraction)
    assert torch.cuda.memory_reserved() == 0
    before = torch.cuda.memory_stats_as_nested_dict()
    free = torch.cuda.mem_get_info()[0]
    seq = Sequence()
    body(seq, random.Random(seed), free)
    after = torch.cuda.memory_stats_as_nested_dict()
    gave, retries = (after[k] - before[k] for k in ("num_device_alloc", "num_alloc_retries"))
    seq.out.append(["z", 0, gave, retries] + seq.out[-1][4:])
    lines.append({"k": "sequence", "name": name, "seed": seed, "expandable": EXPANDABLE, "free": free,
                  "allowed": int(fraction * total) if allowed else 0})
    lines += seq.out
    pointers += [name] + seq.pointers
    print(f"{name}: {len(seq.out)} calls, driver gave {gave}, retries {retries}", flush=True)


def main(path):
    lines, pointers = [], []
    for i, (name, calls, kind, streams, uses, empty, limit, allowed, ballast) in enumerate(PLANS):
        calls = calls * 2 // 3 if EXPANDABLE else calls

        def body(seq, rng, free):
            held = (free - 1024 * MIB) // (20 * MIB) * 20 * MIB if ballast else 0
            drive(seq, rng, calls, kind, streams, uses, empty, limit * MIB, held)

        run(name, 300 + i, allowed * MIB, body, lines, pointers)
    for seed in (400, 401):
        run("training", seed, 0, lambda seq, rng, free: training(seq, rng, 300), lines, pointers)
    run("training limit", 402, 1301 * MIB, lambda seq, rng, free: training(seq, rng, 300), lines, pointers)
    with open(path, "w") as f:
        f.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    with open(path + ".pointers", "w") as f:
        f.writelines(f"{p}\n" for p in pointers)


if __name__ == "__main__":
    EXPANDABLE = len(sys.argv) > 2
    if not EXPANDABLE:
        part = sys.argv[1] + ".expandable"
        env = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
        subprocess.run([sys.executable, __file__, part, "expandable"], env=env, check=True)
    torch.cuda.init()
    print(torch.__version__, torch.cuda.get_device_name(), torch.cuda.mem_get_info(), flush=True)
    STREAMS = [torch.cuda.Stream(), torch.cuda.Stream()]
    for s in STREAMS + [torch.cuda.default_stream()]:
        with torch.cuda.stream(s):
            torch.cuda._sleep(1000)
    torch.cuda.synchronize()
    main(sys.argv[1])
    if not EXPANDABLE:
        with open(sys.argv[1], "a") as f:
            f.write(open(part).read())
        os.remove(part)
