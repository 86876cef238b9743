#!/usr/bin/env python3
"""Times torch's fused AdamW over one fp32 tensor, for comparison with bin/kernels_bench ("adamw fp32").

    torch_adam.py [--elements N]      prints one JSON line; needs torch with CUDA and 20 bytes an element

Medians of CUDA-event times of optimizer.step() after ten warm-ups. Bytes are those the update must move: 28 an element.
"""

import argparse
import json
import statistics

import torch


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--elements", type=int, default=1 << 28)
    parser.add_argument("--repeats", type=int, default=21)
    arguments = parser.parse_args()

    generator = torch.Generator(device="cuda").manual_seed(1)
    param = torch.nn.Parameter(torch.randn(arguments.elements, device="cuda", generator=generator) * 0.02)
    param.grad = torch.randn(arguments.elements, device="cuda", generator=generator) * 1e-3
    for variant in ("fused", "foreach"):
        optimizer = torch.optim.AdamW([param], lr=1e-3, **{variant: True})
        times = []
        for step in range(-10, arguments.repeats):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            optimizer.step()
            end.record()
            end.synchronize()
            if step >= 0:
                times.append(begin.elapsed_time(end) * 1e-3)
        seconds = statistics.median(times)
        print(
            json.dumps(
                {
                    "name": f"torch AdamW {variant}",
                    "torch": torch.__version__,
                    "device": torch.cuda.get_device_name(),
                    "elements": arguments.elements,
                    "seconds": seconds,
                    "elements_per_second": arguments.elements / seconds,
                    "bytes_per_second": 28 * arguments.elements / seconds,
                }
            )
        )
        del optimizer


if __name__ == "__main__":
    main()
