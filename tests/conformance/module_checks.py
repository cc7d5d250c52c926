"""Modules and optimizers of PyTorch's databases on the device against the CPU."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import islice
from typing import Any

import torch

from ..device.fuse.mode import deferring
from .agreement import Agreement, Disagreement, by_double_precision, outcome, raised, same, same_error, tolerance_of
from .draws import Draws
from .nodes import DTYPES, Node, modules, optimizers
from .operands import Mover, NotForDevice, tensors_of, widened

STEPS = 3
"""Steps an optimizer takes."""


def check_module(node: Node, limit: int | None) -> list[Agreement]:
    """Checks a module in training and evaluation. Returns how each call agrees; raises Disagreement at the first that differs."""
    info, dtype, agreements = modules()[node.op], DTYPES[node.dtype], []
    for training in (True, False) if info.train_and_eval_differ else (True,):
        found = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=node.variant in ("gradients", "fuse"), training=training)
        for number, given in enumerate(islice(found, limit)):
            if given.forward_input is None:
                continue
            try:
                agreements.append(_one_module(info, node.variant, dtype, given, training, f"input {number}{'' if training else ', eval'}"))
            except NotForDevice:
                continue
    return agreements


def _one_module(info: Any, variant: str, dtype: torch.dtype, given: Any, training: bool, label: str) -> Agreement:
    torch.manual_seed(0)
    built = info.module_cls(*given.constructor_input.args, **given.constructor_input.kwargs)
    arguments = (given.forward_input.args, given.forward_input.kwargs)
    here, there = Mover("cpu")(arguments), Mover("tpu")(arguments)
    if info.is_lazy:  # the first call makes the parameters
        built.to(dtype)(*here[0], **here[1])
    module = built.to(dtype).train(training)
    twin, wide = copy.deepcopy(module).to("tpu"), copy.deepcopy(module).double()
    with Draws() as draws:
        expected = outcome(lambda: _run_module(module, here, variant))
    actual = outcome(lambda: _run_module(twin, there, variant))
    if expected.error is not None:
        same_error(actual, expected.error, label)
        return Agreement.SAME
    if actual.error is not None:
        raise raised(actual.error, label)
    try:
        same(actual.value, expected.value, tolerance_of(info, dtype), label, values=not draws.happened)
    except Disagreement:
        exact = outcome(lambda: _run_module(wide, widened(Mover("cpu")(arguments)), variant))
        if exact.error is not None:
            raise
        agreement = by_double_precision(actual.value, expected.value, exact.value, tolerance_of(info, dtype))
        if agreement is Agreement.DIFFERENT:
            raise
        return agreement
    return Agreement.SAME


def _run_module(module: Any, arguments: Any, variant: str) -> Any:
    """What a module returns and what it keeps; with gradients (and deferred), those of its parameters and inputs."""
    call: Callable[..., Any] = module
    if variant == "fuse":
        with deferring():
            return _run_module(module, arguments, "gradients")
    if variant == "compile":
        torch._dynamo.reset()
        call = torch.compile(module, backend="tpu", dynamic=False)
    args, kwargs = arguments
    results = call(*args, **kwargs)
    found: list[Any] = [results, dict(module.named_buffers())]
    differentiable = [t for t in tensors_of(results) if t.requires_grad]
    if variant == "gradients" and differentiable:
        inputs = [p for p in module.parameters() if p.requires_grad] + [t for t in tensors_of(arguments) if t.requires_grad]
        if inputs:
            found.append(list(torch.autograd.grad([t.sum() for t in differentiable], inputs, allow_unused=True)))
    torch.tpu.synchronize()
    return found


def check_optimizer(node: Node, limit: int | None) -> list[Agreement]:
    """Checks an optimizer with each implementation it has; see `check_module`."""
    info, dtype, agreements = optimizers()[node.op], DTYPES[node.dtype], []
    implementations: list[dict[str, bool]] = [{"foreach": False}] if "foreach" in info.supported_impls else [{}]
    implementations += [{name: True} for name in ("foreach", "fused") if name in info.supported_impls]
    for number, given in enumerate(islice(info.optim_inputs_func(device="cpu", dtype=dtype), limit)):
        for implementation in implementations:
            settings = {k: v for k, v in given.kwargs.items() if k not in ("foreach", "fused")} | implementation
            if settings.get("differentiable") or (settings.get("capturable") and "foreach" not in implementation):
                continue
            expected = outcome(lambda s=settings: _train(info, s, dtype, "cpu"))
            actual = outcome(lambda s=settings: _train(info, s, dtype, "tpu"))
            label = f"input {number} {given.desc} {settings}"
            if expected.error is not None:
                if not settings.get("capturable"):  # the CPU has no capturable optimizers
                    same_error(actual, expected.error, label)
                continue
            if actual.error is not None:
                raise raised(actual.error, label)
            same(actual.value, expected.value, tolerance_of(info, dtype), label)
            agreements.append(Agreement.SAME)
    return agreements


def _train(info: Any, settings: dict[str, Any], dtype: torch.dtype, device: str) -> Any:
    generator = torch.Generator().manual_seed(3)
    shapes = [(3, 4), (4, 2)] if info.name == "Muon" else [(3, 4), (4,), ()]
    settings = {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in settings.items()}
    parameters = [torch.nn.Parameter(torch.randn(s, dtype=dtype, generator=generator).to(device)) for s in shapes]
    optimizer = info.optim_cls(parameters, **settings)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = sum(((p * p).sum() + (p * 0.5).sin().sum() for p in parameters), torch.zeros((), dtype=dtype, device=device))
        loss.backward()
        return loss

    for _ in range(STEPS):
        if info.step_requires_closure:
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
    return [p.detach() for p in parameters]
