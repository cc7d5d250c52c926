"""Ctrl-C in a loop of in-place operators: KeyboardInterrupt every time, and every tensor is either updated or not, never lost."""

from __future__ import annotations

from .processes import run


def test_twenty_interrupts_of_a_loop() -> None:
    code = """
        import signal, time
        import torch

        tensors = [torch.zeros(1_000_000, device="tpu"), torch.zeros(2_000_000, device="tpu")[1:1_000_001], torch.zeros(8, device="tpu")]
        for t in tensors:
            t.add_(1)
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
        interrupted = updates = 0
        for i in range(20):
            for t in tensors:
                t.zero_()
            end = time.time() + 20
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.01 + 0.0037 * i)
                while time.time() < end:
                    for t in tensors:
                        t.add_(1)
            except KeyboardInterrupt:
                interrupted += 1
            hosts = [t.cpu() for t in tensors]
            assert all((h == h[0]).all() for h in hosts)
            counts = [h[0].item() for h in hosts]
            assert 0 <= counts[0] - counts[2] <= 1 and counts[0] >= counts[1] >= counts[2], counts
            updates += counts[2]
        assert updates > 0
        print(interrupted, torch.tpu.memory_allocated())
    """
    assert run(code, timeout=280) == "20 12000032"
