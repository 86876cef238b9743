"""Measures on one GPU what `windowed` does in its optimizer step, without Megatron-LM around it.

    python3 windowed_loop.py OUT.jsonl      # torch with CUDA, 50 GB of device and 20 GB of host memory, one minute

Shards are those of the 1.8 B job (24 layers, hidden 2048). Masters and gradients stay on the device; moments lie in
pinned tensors and pass through two slots: H2D(k+1) is enqueued before step k and waits for D2H and for the compute
work enqueued until then. Times are from a synchronised device to a synchronised device. Lines of OUT:

    duplex     `reps` copies of `bytes` in each direction at once, started together behind a spinning kernel: how long
               each direction took, and its rate alone
    windowed   seconds of the loop for chunks of `mb` MiB of moments (0: one chunk), and until the host had enqueued it
    trace      per chunk start and end (ms) of h(ost to device), s(tep), d(evice to host)
    resident   Adam over everything at once, and the cast of the masters to bf16
"""

import json
import sys
import time

import torch

MIB = 2**20
EMBEDDING = 103022592
LAYER = [16777216, 33554432, 12582912, 4194304]
SHARDS = [EMBEDDING] + LAYER * 24 + [EMBEDDING] + [2048] * 49

h2d, d2h = torch.cuda.Stream(), torch.cuda.Stream()
out = open(sys.argv[1], "w")


def emit(**line):
    out.write(json.dumps(line) + "\n")
    out.flush()


def timed_event(stream):
    event = torch.cuda.Event(enable_timing=True)
    event.record(stream)
    return event


def duplex(host, device, size, reps, up=True, down=True):
    torch.cuda.synchronize()
    torch.cuda._sleep(20_000_000)
    go = torch.cuda.Event()
    go.record()
    ends = []
    for stream, active, target, source in ((h2d, up, device[0], host[0]), (d2h, down, host[1], device[1])):
        stream.wait_event(go)
        with torch.cuda.stream(stream):
            begin = timed_event(stream)
            for _ in range(reps if active else 0):
                target[:size].copy_(source[:size], non_blocking=True)
            ends.append((begin, timed_event(stream)))
    torch.cuda.synchronize()
    return [begin.elapsed_time(end) for begin, end in ends]


def measure_duplex():
    host = [torch.ones(1 << 30, dtype=torch.uint8, pin_memory=True) for _ in range(2)]
    device = [torch.empty(1 << 30, dtype=torch.uint8, device="cuda") for _ in range(2)]
    for size, reps in ((1 << 30, 8), (256 * MIB, 32), (64 * MIB, 100), (16 * MIB, 200), (4 * MIB, 400), (MIB, 400)):
        duplex(host, device, size, reps)
        both = duplex(host, device, size, reps)
        alone_up = duplex(host, device, size, reps, down=False)[0]
        alone_down = duplex(host, device, size, reps, up=False)[1]
        emit(k="duplex", bytes=size, reps=reps, h2d_ms=both[0], d2h_ms=both[1],
             h2d_alone=size * reps / alone_up / 1e6, d2h_alone=size * reps / alone_down / 1e6)


def chunks_of(mib):
    if mib == 0:
        return [list(range(len(SHARDS)))]
    chunks, size = [[]], 0
    for i, numel in enumerate(SHARDS):
        if chunks[-1] and size + 8 * numel > mib * MIB:
            chunks.append([])
            size = 0
        chunks[-1].append(i)
        size += 8 * numel
    return chunks


def aligned(numel):
    return (numel + 63) // 64 * 64


def views(flat, chunk):
    offset, result = 0, []
    for i in chunk:
        result.append(flat[offset:offset + SHARDS[i]])
        offset += aligned(SHARDS[i])
    return result


def adam(kernel, params, grads, exp_avg, exp_avg_sq, step):
    if kernel == "none":
        return
    if kernel == "fused":
        torch._fused_adamw_(params, grads, exp_avg, exp_avg_sq, [], [step] * len(params), amsgrad=False, lr=1e-4,
                            beta1=0.9, beta2=0.95, weight_decay=0.01, eps=1e-8, maximize=False)
        return
    torch._foreach_mul_(params, 1 - 1e-6)
    torch._foreach_lerp_(exp_avg, grads, 1 - 0.9)
    torch._foreach_mul_(exp_avg_sq, 0.95)
    torch._foreach_addcmul_(exp_avg_sq, grads, grads, 1 - 0.95)
    denominator = torch._foreach_sqrt(exp_avg_sq)
    torch._foreach_div_(denominator, 0.5)
    torch._foreach_add_(denominator, 1e-8)
    torch._foreach_addcdiv_(params, exp_avg, denominator, -1e-4)


class Loop:
    def __init__(self):
        self.grads = [torch.randn(n, device="cuda") * 1e-3 for n in SHARDS]
        self.masters = [torch.randn(n, device="cuda") for n in SHARDS]
        self.params = [torch.empty(n, device="cuda", dtype=torch.bfloat16) for n in SHARDS]
        self.exp_avg = [torch.zeros(n, pin_memory=True) for n in SHARDS]
        self.exp_avg_sq = [torch.zeros(n, pin_memory=True) for n in SHARDS]
        self.step = torch.tensor(3.0, device="cuda")

    def cast(self):
        for param, master in zip(self.params, self.masters):
            param.copy_(master)

    def run(self, mib, kernel):
        chunks = chunks_of(mib)
        capacity = max(sum(aligned(SHARDS[i]) for i in chunk) for chunk in chunks)
        slots = [[torch.empty(capacity, device="cuda") for _ in range(2)] for _ in range(min(2, len(chunks)))]
        compute = torch.cuda.current_stream()
        moments, loaded, trace = {}, {}, []

        def load(k):
            moments[k] = [views(flat, chunks[k]) for flat in slots[k % len(slots)]]
            h2d.wait_stream(d2h)
            h2d.wait_stream(compute)
            with torch.cuda.stream(h2d):
                begin = timed_event(h2d)
                for i, m, v in zip(chunks[k], *moments[k]):
                    m.copy_(self.exp_avg[i], non_blocking=True)
                    v.copy_(self.exp_avg_sq[i], non_blocking=True)
                loaded[k] = timed_event(h2d)
            trace.append(("h", k, begin, loaded[k]))

        load(0)
        torch.cuda.synchronize()
        base, start = timed_event(compute), time.perf_counter()
        for k, chunk in enumerate(chunks):
            compute.wait_event(loaded[k])
            if k + 1 < len(chunks):
                load(k + 1)
            begin = timed_event(compute)
            adam(kernel, [self.masters[i] for i in chunk], [self.grads[i] for i in chunk], *moments[k], self.step)
            trace.append(("s", k, begin, timed_event(compute)))
            d2h.wait_stream(compute)
            with torch.cuda.stream(d2h):
                begin = timed_event(d2h)
                for i, m, v in zip(chunk, *moments[k]):
                    self.exp_avg[i].copy_(m, non_blocking=True)
                    self.exp_avg_sq[i].copy_(v, non_blocking=True)
                trace.append(("d", k, begin, timed_event(d2h)))
        self.cast()
        enqueued = time.perf_counter() - start
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        rows = [(n, k, round(base.elapsed_time(a), 3), round(base.elapsed_time(b), 3)) for n, k, a, b in trace]
        return seconds, enqueued, rows


def measure_loop():
    loop = Loop()
    for mib in (512, 64, 0):
        for kernel in ("foreach", "fused", "none"):
            runs = [loop.run(mib, kernel) for _ in range(9)]
            emit(k="windowed", mb=mib, adam=kernel, s=[round(r[0], 5) for r in runs],
                 host=[round(r[1], 5) for r in runs])
    seconds, _, rows = loop.run(512, "foreach")
    emit(k="trace", mb=512, adam="foreach", s=seconds, rows=rows)
    moments = [[torch.zeros(n, device="cuda") for n in SHARDS] for _ in range(2)]
    for kernel in ("foreach", "fused"):
        for _ in range(3):
            torch.cuda.synchronize()
            start = time.perf_counter()
            adam(kernel, loop.masters, loop.grads, *moments, loop.step)
            torch.cuda.synchronize()
            stepped = time.perf_counter()
            loop.cast()
            torch.cuda.synchronize()
        emit(k="resident", adam=kernel, s=stepped - start, cast_s=time.perf_counter() - stepped)


measure_duplex()
measure_loop()
