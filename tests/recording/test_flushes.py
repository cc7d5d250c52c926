"""Flushes in the record: reason, line, how the cluster ran, and in what it differs from one that has a program."""

from __future__ import annotations

import torch

from tests.device.fuse.mode import deferring
from tpu_lab.analysis.findings import findings
from tpu_lab.device import host_first
from tpu_lab.device.fuse import clusters
from tpu_lab.record.happenings import Flush
from tpu_lab.record.reasons import ClusterState, FlushReason, RecompileReason
from tpu_lab.record.run import Run
from tpu_lab.recording.recorder import Recorder
from tpu_lab.views.text import summary


def line_of(run: Run, flush: Flush) -> str:
    location = run.locations[flush.location]
    return next(line.text for line in run.sources[location.source].lines if line.number == location.line)


def test_reads_and_backward_passes_are_recorded_with_reason_and_line() -> None:
    with deferring("replay"):
        w = torch.ones(3, 11, device="tpu", requires_grad=True)
        with Recorder(mode="fuse", blocking=False) as recorder:
            loss = (w * 2).sum()
            loss.backward()
            loss.item()
            (w * 3).detach().cpu()
            (w * 4).sum()
            torch.accelerator.synchronize()
    flushes = recorder.run.flushes
    assert [f.reason for f in flushes] == ["autograd_post_backward", "cpu", "synchronize"]
    assert [f.ops for f in flushes][1:] == [1, 2] and flushes[1].live == 1
    assert ".cpu()" in line_of(recorder.run, flushes[1])
    assert recorder.run.totals.flushes == 3 and recorder.run.totals.flush_ns > 0
    text = summary(recorder.run)
    assert "autograd_post_backward" in text and "Call by call" in text
    assert all(FlushReason.of(f.reason).id == f.reason and ClusterState.of(f.state).id == f.state for f in flushes)


def step(x: torch.Tensor, twice: bool = False, keep: bool = False, wide: bool = False) -> list[torch.Tensor]:
    y = x * 0.5
    a, b = (y, x - 3)[:: -1 if twice else 1]
    z = (a + b).tanh()
    total = (z.flatten() if not wide else torch.cat([z, z])).sum()
    kept = [y] if keep else []
    del y, a, b
    total.item()
    return kept


def test_a_cluster_without_a_program_says_in_what_it_differs() -> None:
    with deferring("tiered"):
        x, other = torch.ones(3, 11, device="tpu"), torch.ones(3, 12, device="tpu")
        for _ in range(clusters.SIGHTINGS + 1):
            step(x)
        host_first.finish()
        with Recorder(mode="fuse", blocking=False) as recorder:
            step(x)
            step(other)
            step(x, twice=True)
            step(x, wide=True)
            kept = step(x, keep=True)
    found = [(f.state, f.difference) for f in recorder.run.flushes]
    assert found == [("fused", ""), ("unseen", "shape"), ("unseen", "wiring"), ("unseen", "operator"), ("unseen", "liveness")]
    assert "float32[3, 12], the program has float32[3, 11]" in recorder.run.flushes[1].message
    assert all(RecompileReason.of(reason).id == reason for _, reason in found if reason)
    assert kept[0].sum().item() == 16.5


def test_a_cluster_that_cannot_be_compiled_is_a_finding() -> None:
    failed = Flush("item", ClusterState.FAILED.id, ops=9, duration_ns=1000)
    (finding,) = findings(Run(mode="fuse", flushes=(failed, failed)))
    assert finding.id == "TL307" and finding.count == 2 and finding.remedy
