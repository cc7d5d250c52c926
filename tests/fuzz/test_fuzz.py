"""A little of `make fuzz`, and that it notices what it is there for."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings

from . import steps
from .sequence import Difference, run
from .steps import Step, sequences


@settings(max_examples=20, derandomize=True, suppress_health_check=list(HealthCheck))
@given(sequences)
def test_some_sequences(given_steps: list[Step]) -> None:
    run(given_steps)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: x + 1 if x.device.type == "tpu" else x,
        lambda x: x.double() if x.device.type == "tpu" else x,
        lambda x: x[..., :0] if x.device.type == "tpu" else x,
        lambda x: x.add_(1) and x.clone() if x.device.type == "tpu" else x.clone(),
        lambda x: torch.empty(0).item() if x.device.type == "tpu" else x,
        lambda x: x if x.device.type == "tpu" else torch.empty(0).item(),
    ],
    ids=["value", "dtype", "shape", "operand", "raises", "does not raise"],
)
def test_differences_are_noticed(wrong: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(steps.STEPS, "neg", lambda x, y, i, j, k: wrong(x))  # type: ignore[operator]
    with pytest.raises(Difference):
        run([Step("neg", 1, 0, 0, 0, 0)])
