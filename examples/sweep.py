#!/usr/bin/env python3
"""Sweeps tensor parallelism and the micro-batch, prints a table, and plots it where matplotlib is:

    sweep.py [SPEC] [PICTURE]
"""

import sys

import orrery

spec = sys.argv[1] if len(sys.argv) > 1 else "examples/llama-3.1-70b.yaml"
picture = sys.argv[2] if len(sys.argv) > 2 else "sweep.png"
tensor = [2, 4, 8]
batches = [1, 2, 4]

lines: dict[int, list[tuple[int, float]]] = {degree: [] for degree in tensor}
cases = orrery.compare(spec, vary={"strategy.tensor": tensor, "strategy.micro_batch": batches})
combinations = [(degree, batch) for degree in tensor for batch in batches]
print(f"{'tensor':>8} {'batch':>6} {'step s':>8} {'GiB':>7}  fits")
for (degree, batch), case in zip(combinations, cases):
    if case.report is None:
        print(f"{degree:8} {batch:6} {'-':>8} {'-':>7}  {case.error}")
        continue
    memory = case.report.memory
    print(f"{degree:8} {batch:6} {case.report.step_time_s:8.2f} {memory.peak_device_bytes / 2**30:7.1f}  {memory.fits}")
    if memory.fits:
        lines[degree].append((batch, case.report.tokens_per_s_per_gpu))

try:
    import matplotlib
except ImportError:
    print("no picture: matplotlib is not installed (python3-matplotlib)", file=sys.stderr)
    sys.exit(0)
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

for degree, points in lines.items():
    pyplot.plot(*zip(*points) if points else ([], []), marker="o", label=f"tensor {degree}")
pyplot.xlabel("micro-batch")
pyplot.ylabel("tokens/s per GPU, where it fits")
pyplot.legend()
pyplot.savefig(picture, dpi=120)
print(f"{picture} is written")
