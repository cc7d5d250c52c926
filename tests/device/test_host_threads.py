"""Small host kernels run on one thread and leave torch's number of threads as the user set it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tpu_lab.device import fallback

aten = torch.ops.aten


@pytest.fixture
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("elements", "threads"), [(8, 1), (1 << 20, 3)])
def test_threads_by_size(three_threads: None, monkeypatch: pytest.MonkeyPatch, elements: int, threads: int) -> None:
    seen = []
    call = fallback._call
    monkeypatch.setattr(fallback, "_call", lambda *args: (seen.append(torch.get_num_threads()), call(*args))[1])
    x = torch.arange(float(elements)).to("tpu")
    result, _ = fallback.run_on_cpu(aten.neg.default, (x,), {})
    assert seen == [threads] and torch.get_num_threads() == 3
    assert torch.equal(result.cpu(), -x.cpu())


def test_an_error_gives_them_back(three_threads: None) -> None:
    with pytest.raises(RuntimeError, match="must match the size"):
        fallback.run_on_cpu(aten.add.Tensor, (torch.ones(2).to("tpu"), torch.ones(3).to("tpu")), {})
    assert torch.get_num_threads() == 3


def test_lists_and_tuples_cross() -> None:
    parts = [torch.ones(2).to("tpu"), torch.zeros(1).to("tpu")]
    result, crossing = fallback.run_on_cpu(aten.cat.default, (parts, 0), {})
    assert torch.equal(result.cpu(), torch.tensor([1.0, 1.0, 0.0])) and crossing.bytes_out == 12
    values, indices = fallback.run_on_cpu(aten.sort.default, (result,), {})[0]
    assert values.cpu().tolist() == [0, 1, 1] and indices.cpu().tolist() == [2, 0, 1]
