#!/usr/bin/env python3
"""Reads a checkpoint without Ebb's code, from the public descriptions of its formats alone.

    checkpoint_read.py DRIVER      DRIVER: bin/checkpoint_kill_driver

A driver saves some states and is killed. Then every safetensors file of the newest checkpoint is parsed with json and
struct (https://github.com/huggingface/safetensors, "Format"), its tensors are put together, and every element is
compared with the formula of the made-up states (bits_of in tests/replay/checkpoint_cases.hpp). Where Python has the
safetensors package, its reader must give the same bytes. Exit 0 when all is equal.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile
import time

SIZES = {"F32": 4, "BF16": 2, "F16": 2}
STATES = {"exp_avg": 1, "exp_avg_sq": 2, "master": 4, "param": 16}
PARAMETERS = ["embedding", "layers.0.fc1", "layers.0.norm", "head"]
NUMEL = {"embedding": 257 * 64, "layers.0.fc1": 128 * 513, "layers.0.norm": 129, "head": 31 * 67}
MASK = (1 << 64) - 1


def bits_of(parameter, state, element, step):
    x = (element * 0x2545F4914F6CDD1D + parameter * 1000003 + state * 7919 + step * 104729) & MASK
    x ^= x >> 31
    return (x * 0x9E3779B97F4A7C15 & MASK) >> 32


def tensors_of(path):
    """Name, dtype, shape and bytes of every tensor, with the checks that the format's description makes."""
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    header = data[8 : 8 + length]
    assert header[:1] == b"{" and length <= 100_000_000
    described = json.loads(header)
    assert all(isinstance(value, str) for value in described.pop("__metadata__").values())
    body = data[8 + length :]
    assert (8 + length) % 4096 == 0
    end = 0
    for name, tensor in sorted(described.items(), key=lambda item: item[1]["data_offsets"]):
        begin, stop = tensor["data_offsets"]
        numel = 1
        for extent in tensor["shape"]:
            numel *= extent
        assert begin == end and stop - begin == numel * SIZES[tensor["dtype"]], name
        assert begin % SIZES[tensor["dtype"]] == 0, name
        end = stop
        yield name, tensor["dtype"], numel, body[begin:stop]
    assert end == len(body)


def check(checkpoint):
    with open(os.path.join(checkpoint, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    step = manifest["place"]["steps"]
    seen = {}
    for file in manifest["files"]:
        path = os.path.join(checkpoint, file["name"])
        assert os.path.getsize(path) == file["bytes"]
        for name, dtype, numel, data in tensors_of(path):
            state, rest = name.split("/", 1)
            parameter, offset = rest.rsplit("@", 1)
            size = SIZES[dtype]
            expected = b"".join(
                struct.pack("<I", bits_of(PARAMETERS.index(parameter), STATES[state], int(offset) + i, step))[:size]
                for i in range(numel)
            )
            assert data == expected, name
            seen[state, parameter] = seen.get((state, parameter), 0) + numel
    assert seen == {(state, parameter): NUMEL[parameter] for state in STATES for parameter in PARAMETERS}
    return step, [os.path.join(checkpoint, file["name"]) for file in manifest["files"]]


def compare_with_package(paths):
    try:
        from safetensors import deserialize
    except ImportError:
        return "the safetensors package is not here"
    for path in paths:
        with open(path, "rb") as file:
            theirs = {name: (tensor["dtype"], bytes(tensor["data"])) for name, tensor in deserialize(file.read())}
        ours = {name: (dtype, data) for name, dtype, _, data in tensors_of(path)}
        assert theirs == ours
    return "the safetensors package reads the same bytes"


def main():
    with tempfile.TemporaryDirectory() as directory:
        with subprocess.Popen([sys.argv[1], "run", directory], stdout=subprocess.PIPE, text=True) as driver:
            committed = driver.stdout.readline()
            driver.kill()
        assert committed.startswith("committed "), "the driver did not save"
        time.sleep(0.1)
        newest = max(name for name in os.listdir(directory) if name.startswith("step-") and "." not in name)
        step, paths = check(os.path.join(directory, newest))
        print(f"step {step}: every element of {len(paths)} files is as it was saved; {compare_with_package(paths)}")


if __name__ == "__main__":
    main()
