"""How fast torch's host thread enqueues an eager forward, and how fast it runs: 24 layers of the measured 1.8 B job
(local attention, unfused rotary embedding and SwiGLU, no biases) written out after Megatron-LM's modules.

Prints one line a step: host and device milliseconds of forward and backward, tensors allocated a layer. Needs one GPU
with 20 GB and torch.
"""

import json
import math
import time

import torch
import torch.nn.functional as F

SEQUENCE, HIDDEN, HEADS, HEAD, FFN, LAYERS = 2048, 2048, 16, 128, 8192, 24


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return torch.matmul(x, weight.t())

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        of_input = gradient.matmul(weight)
        gradient = gradient.contiguous().view(-1, gradient.shape[-1])
        return of_input, gradient.t().matmul(x.view(-1, x.shape[-1]))


def parameter(*shape):
    return torch.nn.Parameter(torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * 0.02)


def rotate(tensor, angles):
    turned, rest = tensor[..., :HEAD], tensor[..., HEAD:]
    cosine = (torch.cos(angles) * 1.0).to(tensor.dtype)
    sine = (torch.sin(angles) * 1.0).to(tensor.dtype)
    first, second = torch.chunk(turned, 2, dim=-1)
    half = torch.cat((-second, first), dim=-1)
    return torch.cat(((turned * cosine) + (half * sine), rest), dim=-1)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = parameter(HIDDEN), parameter(HIDDEN)
        self.qkv, self.proj = parameter(3 * HIDDEN, HIDDEN), parameter(HIDDEN, HIDDEN)
        self.fc1, self.fc2 = parameter(2 * FFN, HIDDEN), parameter(HIDDEN, FFN)

    def forward(self, x, angles, mask, buffer):
        mixed = Linear.apply(F.rms_norm(x, (HIDDEN,), self.norm1), self.qkv).view(SEQUENCE, 1, HEADS, 3 * HEAD)
        query, key, value = torch.split(mixed, HEAD, dim=3)
        query, key = rotate(query, angles), rotate(key, angles)
        query = query.view(SEQUENCE, HEADS, HEAD).transpose(0, 1)
        key = key.view(SEQUENCE, HEADS, HEAD).transpose(0, 1).transpose(1, 2)
        scores = torch.baddbmm(buffer, query, key, beta=0.0, alpha=1 / math.sqrt(HEAD))
        scores = scores.view(1, HEADS, SEQUENCE, SEQUENCE)
        weights = torch.softmax(scores.masked_fill_(mask, -10000.0), dim=-1).view(HEADS, SEQUENCE, SEQUENCE)
        context = torch.bmm(weights, value.reshape(SEQUENCE, HEADS, HEAD).transpose(0, 1))
        context = context.view(1, HEADS, SEQUENCE, HEAD).permute(2, 0, 1, 3).contiguous().view(SEQUENCE, 1, HIDDEN)
        x = x + Linear.apply(context, self.proj)
        gate, linear = torch.chunk(Linear.apply(F.rms_norm(x, (HIDDEN,), self.norm2), self.fc1), 2, dim=-1)
        return x + Linear.apply(F.silu(gate) * (linear + 0.0), self.fc2)


def allocations():
    return torch.cuda.memory_stats()["allocation.all.allocated"]


def timed(work):
    torch.cuda.synchronize()
    start = time.perf_counter()
    result = work()
    host = time.perf_counter()
    torch.cuda.synchronize()
    return result, 1e3 * (host - start), 1e3 * (time.perf_counter() - start)


def main():
    layers = [Layer() for _ in range(LAYERS)]
    angles = torch.randn(SEQUENCE, 1, 1, HEAD, device="cuda")
    mask = torch.ones(1, 1, SEQUENCE, SEQUENCE, device="cuda", dtype=torch.bool).triu(1)
    buffer = torch.empty(HEADS, SEQUENCE, SEQUENCE, device="cuda", dtype=torch.bfloat16)
    for step in range(13):
        x = torch.randn(SEQUENCE, 1, HIDDEN, device="cuda", dtype=torch.bfloat16, requires_grad=True)

        def forward():
            y = x
            for layer in layers:
                y = layer(y, angles, mask, buffer)
            return y

        before = allocations()
        y, host, device = timed(forward)
        made = allocations() - before
        gradient = torch.randn_like(y)
        _, back_host, back_device = timed(lambda: y.backward(gradient))
        for layer in layers:
            for weight in layer.parameters():
                weight.grad = None
        if step > 0:  # the first one loads kernels
            print(json.dumps({"k": "eager", "layers": LAYERS, "forward_host_ms": round(host, 2),
                              "forward_device_ms": round(device, 2), "forward_allocations_a_layer": made / LAYERS,
                              "backward_host_ms": round(back_host, 2), "backward_device_ms": round(back_device, 2)}))


if __name__ == "__main__":
    main()
