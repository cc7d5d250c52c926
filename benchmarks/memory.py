"""Whether the memory the device reports is what the process uses, and whether training lets it grow."""

from __future__ import annotations

import gc
from typing import Any

from .children import measure
from .figure import Figure, at_most
from .programs import resident_mb

STEPS = 10_000
_MB = 2**20


def figures(quick: bool) -> list[Figure]:
    """Peaks in MB and the growth of a training loop."""
    peak = measure(peak_memory)
    steps = STEPS // 10 if quick else STEPS
    grown = measure(long_training, steps)
    apart = abs(peak["reported"] - peak["process"])
    return [
        at_most(
            max(16, 0.05 * peak["process"]),
            f"peak of a strict program: reported {peak['reported']:.0f} MB, process {peak['process']:.0f} MB, apart",
            apart,
            "MB",
        ),
        at_most(2, f"growth of the process over {steps:,} training steps (after a tenth of them)", grown["grown"], "MB"),
        at_most(0, f"live device memory grown over {steps:,} training steps", grown["live"], "MB"),
    ]


def _high_water_mb() -> float:
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM:")) / 1024


def _reset_high_water() -> None:
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")


def peak_memory() -> dict[str, float]:
    """Peak over what is alive before, in MB: `reported` by the device, and of the `process` by the kernel. The program ran once before."""
    import torch

    x = torch.linspace(-1, 1, 40_960 * 1024).reshape(40_960, 1024).to("tpu")
    weight = (torch.eye(1024) * 0.5).to("tpu")

    def program() -> float:
        y = torch.nn.functional.gelu(x @ weight) + x
        z = torch.softmax(y, dim=-1)
        z = z * y
        del y
        z.mul_(2).add_(x)
        return float((z - z.mean(dim=-1, keepdim=True)).square().sum().item())

    expected = program()
    gc.collect()
    torch.tpu.reset_peak_memory_stats()
    alive = torch.tpu.memory_allocated()
    _reset_high_water()
    before = _high_water_mb()
    if program() != expected:
        raise RuntimeError("two runs of one program gave different results")
    return {"reported": (torch.tpu.max_memory_allocated() - alive) / _MB, "process": _high_water_mb() - before}


def long_training(steps: int) -> dict[str, Any]:
    """Trains a small net for `steps` steps; MB that the process and the device's live memory grew after the first tenth of them."""
    import torch

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 4)).to("tpu")
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    inputs, targets = torch.randn(8, 16).to("tpu"), torch.randint(4, (8,)).to("tpu")
    before = live = 0.0
    for step in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(inputs), targets)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step == steps // 10:
            gc.collect()
            before, live = resident_mb(), torch.tpu.memory_allocated()
    del loss
    gc.collect()
    return {"grown": resident_mb() - before, "live": max(torch.tpu.memory_allocated() - live, 0) / _MB}
