"""`module.to("tpu")` keeps its Parameter objects, and with them ties, optimizers made before, hooks and weak references."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations

from .against_cpu import assert_agree


def network() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def train(module: nn.Module, optimizer: torch.optim.Optimizer, device: str) -> list[torch.Tensor]:
    x, y = torch.linspace(-1, 1, 20).reshape(5, 4).to(device), torch.arange(5).remainder(3).to(device)
    for _ in range(3):
        optimizer.zero_grad()
        F.cross_entropy(module(x), y).backward()
        optimizer.step()
    return [p.detach().clone() for p in module.parameters()]


def test_an_optimizer_made_before_the_move_trains_the_module() -> None:
    def run(device: str) -> Any:
        module = network()
        objects = list(module.parameters())
        optimizer = torch.optim.Adam(module.parameters(), lr=0.1)
        module.to(device)
        assert all(a is b for a, b in zip(objects, module.parameters(), strict=True))
        return train(module, optimizer, device)

    assert_agree(run, rtol=1e-4, atol=1e-5)


def test_there_and_back_with_ties() -> None:
    module = nn.ModuleDict({"a": nn.Embedding(5, 4), "b": nn.Linear(4, 5, bias=False)})
    module["b"].weight = weight = module["a"].weight
    for target in ("tpu", "cpu", "tpu"):
        module.to(target)
        assert module["a"].weight is weight and module["b"].weight is weight and weight.device.type == target and weight.is_leaf
    module.cpu()
    assert len(list(module.parameters())) == 1 and module["a"].weight is weight


def test_dtypes_change_in_place() -> None:
    def run(device: str) -> Any:
        module = network()
        weight = module[0].weight
        found = [module.to(device, torch.bfloat16)(torch.ones(2, 4, dtype=torch.bfloat16, device=device)).float().round(decimals=1)]
        for dtype in (torch.float16, torch.float64):
            module.to(dtype)
            found.append(module(torch.ones(2, 4, dtype=dtype, device=device)))
            assert module[0].weight is weight and weight.dtype is dtype
        return found[1].dtype, found[2].dtype, module.float()[0].weight.dtype, [module.half()[0].weight.dtype, module.bfloat16()[0].weight.dtype]

    assert_agree(run)


def test_modules_that_are_partly_there() -> None:
    def run(device: str) -> Any:
        module = network()
        module[0].to(device)
        module.here, module.there = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2, device=device))
        there = module.there
        module.to(device, torch.float64)
        return [p.detach() for p in module.parameters()], module.there is there, {p.device.type == device for p in module.parameters()}

    assert_agree(run)


NORMED: dict[str, Callable[[nn.Linear], nn.Module]] = {
    "weight_norm, old style": nn.utils.weight_norm,
    "weight_norm, parametrized": parametrizations.weight_norm,
    "spectral_norm, old style": nn.utils.spectral_norm,
    "spectral_norm, parametrized": parametrizations.spectral_norm,
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", NORMED)
def test_normed_weights(name: str) -> None:
    def run(device: str) -> Any:
        torch.manual_seed(0)
        module = NORMED[name](nn.Linear(4, 3))
        optimizer = torch.optim.SGD(module.parameters(), 0.1)
        module.to(device)
        x = torch.arange(8.0).reshape(2, 4).to(device)
        first = module(x)
        first.sum().backward()
        optimizer.step()
        gradients = [p.grad for p in module.parameters()]
        return first, module(x), gradients, sorted(n for n, _ in module.named_parameters()), module.cpu()(x.cpu())

    assert_agree(run, rtol=1e-4, atol=1e-5)


def test_orthogonal_parametrization() -> None:
    torch.manual_seed(0)
    weight = parametrizations.orthogonal(nn.Linear(3, 3)).to("tpu").weight
    torch.testing.assert_close((weight @ weight.T).cpu(), torch.eye(3), rtol=1e-5, atol=1e-5)


def test_weak_references_and_attributes_survive() -> None:
    def run(device: str) -> Any:
        module = network()
        reference = weakref.ref(module[0].weight)
        module[0].weight.note = "mine"
        optimizer = torch.optim.SGD(module.parameters(), 0.1)
        module.to(device)
        gc.collect()
        assert reference() is module[0].weight and module[0].weight.note == "mine"
        return train(module, optimizer, device)

    assert_agree(run, rtol=1e-4, atol=1e-5)


def test_hooks_on_parameters_survive() -> None:
    def run(device: str) -> Any:
        module, seen = network(), []
        module[0].weight.register_hook(lambda grad: grad * 2)
        module[2].bias.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))
        module.to(device)
        F.cross_entropy(module(torch.ones(2, 4, device=device)), torch.tensor([0, 1], device=device)).backward()
        return seen, module[0].weight.grad

    assert_agree(run, rtol=1e-4, atol=1e-6)


def test_gradients_move_along() -> None:
    def run(device: str) -> Any:
        module = network()
        F.mse_loss(module(torch.ones(2, 4)), torch.zeros(2, 3)).backward()
        module[2].bias.requires_grad_(False)
        module.to(device)
        return (
            [p.grad for p in module.parameters()],
            {p.grad.device.type == device for p in module.parameters() if p.grad is not None},
            [p.requires_grad for p in module.parameters()],
        )

    assert_agree(run)


def test_a_live_graph_does_not_stop_the_move() -> None:
    module = network()
    before = module(torch.ones(2, 4))
    weight = module[0].weight
    module.to("tpu")
    assert module[0].weight is weight and weight.device.type == "tpu"
    torch.testing.assert_close(module(torch.ones(2, 4, device="tpu")).cpu(), before.detach(), rtol=1e-5, atol=1e-5)


def test_a_parameter_in_autocasts_cache_is_replaced_with_a_warning_and_stays_tied() -> None:
    one, other = nn.Linear(3, 3), nn.Linear(3, 3)
    other.weight = one.weight
    with torch.autocast("cpu", dtype=torch.bfloat16):
        one(torch.ones(2, 3))
        with pytest.warns(UserWarning, match="move the module outside of the autocast block"):
            nn.ModuleList([one, other]).to("tpu")
    assert one.weight is other.weight and one.weight.device.type == "tpu"


def test_kinds_of_parameters() -> None:
    class Special(nn.Parameter):
        pass

    def run(device: str) -> Any:
        module = nn.Module()
        module.w = Special(torch.ones(3))
        kept = module.w
        module.register_buffer("b", torch.ones(2), persistent=False)
        module.register_buffer("none", None)
        module.to(device)
        lazy = nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d()).to(device)
        kinds = [type(p).__name__ for p in lazy.parameters()]
        shape = lazy(torch.ones(4, 5, device=device)).shape
        return type(module.w).__name__, module.w is kept, module.b, module.b.device.type == device, kinds, shape, lazy[0].weight.shape

    assert_agree(run)


def test_other_ways_onto_the_device() -> None:
    def run(device: str) -> Any:
        weights = {"weight": torch.ones(3, 3), "bias": torch.zeros(3)}
        empty = nn.Linear(3, 3, device="meta").to_empty(device=device)
        empty.load_state_dict(weights)
        assigned = nn.Linear(3, 3, device="meta")
        assigned.load_state_dict({k: v.to(device) for k, v in weights.items()}, assign=True)
        with torch.device(device):
            made = nn.Linear(3, 3)
            x = torch.ones(1, 3)
        made.load_state_dict(weights)
        torch.set_default_device(device)
        try:
            default = nn.Linear(3, 3)
        finally:
            torch.set_default_device(None)
        default.load_state_dict(made.state_dict())
        return [m(x) for m in (empty, assigned, made, default, copy.deepcopy(made))], x.device.type == device

    assert_agree(run)


def test_moves_on_the_cpu_alone_are_torchs_own() -> None:
    module = network()
    weight = module[0].weight
    module.to(torch.float64).to("cpu").float()
    assert module[0].weight is weight
    assert not torch.__future__.get_swap_module_params_on_conversion()


def test_a_graph_older_than_the_move_refuses_its_backward() -> None:
    net = torch.nn.Linear(2, 2)
    loss = net(torch.ones(1, 2)).sum()
    net.to("tpu")
    with pytest.raises(RuntimeError, match="moved to another device"):
        loss.backward()
    net(torch.ones(1, 2, device="tpu")).sum().backward()
    assert net.weight.grad is not None and net.weight.grad.device.type == "tpu"
