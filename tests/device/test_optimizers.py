"""Every optimizer of torch.optim: three steps as on the CPU, in its default form, foreach, fused and with its switches."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from torch import nn

from .against_cpu import assert_agree

OPTIMIZERS = ("Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "LBFGS", "Muon", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD")
SWITCHES: tuple[dict[str, Any], ...] = ({}, {"foreach": True}, {"foreach": False}, {"fused": True}, {"maximize": True, "weight_decay": 0.1})
SPECIAL = {
    "SGD": [{"momentum": 0.9, "nesterov": True}, {"momentum": 0.9, "fused": True, "weight_decay": 0.1}],
    "Adam": [{"amsgrad": True}, {"amsgrad": True, "fused": True}],
    "RMSprop": [{"centered": True, "momentum": 0.9}],
}


def variants() -> list[tuple[str, dict[str, Any]]]:
    found = []
    for name in OPTIMIZERS:
        accepted = inspect.signature(getattr(torch.optim, name)).parameters
        found += [(name, switches) for switches in SWITCHES if all(s in accepted for s in switches)]
        found += [(name, switches) for switches in SPECIAL.get(name, [])]
    return found


def test_none_is_left_out() -> None:
    made = {n for n, c in vars(torch.optim).items() if isinstance(c, type) and issubclass(c, torch.optim.Optimizer)} - {"Optimizer", "SparseAdam"}
    assert made == set(OPTIMIZERS), "SparseAdam wants sparse gradients, which the device does not have"


@pytest.mark.parametrize(("name", "switches"), variants(), ids=lambda v: v if isinstance(v, str) else ",".join(map(str, v)) or "default")
def test_three_steps(name: str, switches: dict[str, Any]) -> None:
    def run(device: str) -> Any:
        torch.manual_seed(0)
        shapes = [(4, 3), (3, 2)] if name == "Muon" else [(4, 3), (3,)]
        params = [nn.Parameter(torch.randn(shape).to(device)) for shape in shapes]
        optimizer = getattr(torch.optim, name)(params, **({"lr": 0.1} if name == "SGD" else {}), **switches)

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = sum(((p - 1) ** 2 * (i + 1)).sum() for i, p in enumerate(params))
            assert isinstance(loss, torch.Tensor)
            loss.backward()
            return loss

        for _ in range(3):
            if name == "LBFGS":
                optimizer.step(closure)
            else:
                closure()
                optimizer.step()
        state = {} if name == "LBFGS" else optimizer.state_dict()["state"]
        assert all(v.device.type == device for held in state.values() for k, v in held.items() if isinstance(v, torch.Tensor) and k.startswith("exp"))
        return [p.detach() for p in params], state

    assert_agree(run, rtol=1e-4, atol=1e-6)


def test_a_learning_rate_on_the_device_and_capturable() -> None:
    def run(device: str) -> Any:
        p = nn.Parameter(torch.ones(3, device=device))
        optimizer = torch.optim.Adam([p], lr=torch.tensor(0.1, device=device), capturable=device == "tpu")
        for _ in range(3):
            p.grad = p.detach() * 2
            optimizer.step()
        return p.detach()

    assert_agree(run, rtol=1e-5, atol=1e-6)


def test_a_changing_learning_rate_builds_no_programs() -> None:
    from tpu_lab.device import program_cache

    p = nn.Parameter(torch.ones(3, device="tpu"))
    optimizer = torch.optim.AdamW([p], lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    counts = []
    for _ in range(8):
        p.grad = torch.ones(3, device="tpu")
        optimizer.step()
        schedule.step()
        counts.append(program_cache.compilations)
    assert counts[-1] == counts[2]


def test_state_saved_and_loaded() -> None:
    def run(device: str) -> Any:
        one, two = (nn.Parameter(torch.ones(2, device=device)) for _ in range(2))
        first, second = torch.optim.Adam([one]), torch.optim.Adam([two])
        one.grad = two.grad = torch.full((2,), 3.0, device=device)
        first.step()
        second.load_state_dict(first.state_dict())
        second.step()
        return two.detach(), second.state[two]["step"], second.state[two]["exp_avg"], second.state[two]["exp_avg"].device.type == device

    assert_agree(run)


def test_clipping_averaging_and_vectors() -> None:
    def run(device: str) -> Any:
        params = [nn.Parameter(torch.arange(4.0).to(device)), nn.Parameter(torch.ones(2).to(device))]
        for p in params:
            p.grad = p.detach() * 3
        norms = [nn.utils.clip_grad_norm_(params, 1.0), nn.utils.clip_grad_norm_(params, 0.5, norm_type=float("inf"), foreach=False)]
        nn.utils.clip_grad_value_(params, 0.1)
        vector = nn.utils.parameters_to_vector(params)
        nn.utils.vector_to_parameters(vector * 2, params)
        module = nn.Linear(2, 2)
        for p in module.parameters():
            nn.init.ones_(p)
        module.to(device)
        averaged = torch.optim.swa_utils.AveragedModel(module, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
        averaged.update_parameters(module)
        nn.init.zeros_(module.weight)
        averaged.update_parameters(module)
        return norms, [p.grad for p in params], [p.detach() for p in params], vector.detach(), dict(averaged.state_dict())

    assert_agree(run)
