"""Plays torch-job-trace.txt through torch's caching allocator on a GPU and prints what it counts after each part.
Lines: "a TENSOR BYTES" allocates, "r TENSOR" frees, "p" ends a part. Set PYTORCH_CUDA_ALLOC_CONF for segments."""
import sys

import torch

MIB = 2**20
torch.zeros(1, device="cuda")
torch.cuda.synchronize()
print("free", torch.cuda.mem_get_info()[0] / MIB, "torch", torch.__version__)
torch.cuda.empty_cache()
torch.cuda.reset_peak_memory_stats()
live = {}
with open(sys.argv[1]) as trace:
    for line in trace:
        word, *rest = line.split()
        if word == "a":
            live[rest[0]] = torch.empty(int(rest[1]), dtype=torch.uint8, device="cuda")
        elif word == "r":
            del live[rest[0]]
        else:
            print("allocated", torch.cuda.memory_allocated() / MIB, "reserved", torch.cuda.memory_reserved() / MIB,
                  "peak_allocated", torch.cuda.max_memory_allocated() / MIB,
                  "retries", torch.cuda.memory_stats()["num_alloc_retries"])
