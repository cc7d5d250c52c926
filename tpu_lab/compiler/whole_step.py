"""Training steps as one graph: forward, `backward()`, `optimizer.step()` and `zero_grad()` in the function that Dynamo traces.

PyTorch traces `backward()` where `torch._dynamo.config.trace_autograd_ops` is on, and then breaks at three places, all of which
`whole_steps` joins while it is entered:

- `Optimizer.step` asks for a graph break around itself, because its author had separate backward graphs in mind. Where the gradients are
  made in the same graph the step is traced as the rest.
- `Optimizer._init_group` runs as Python while it is traced and looks at the gradients, which are not there yet: empty stand-ins are.
- A tensor that leaves the graph and whose autograd graph backward used up ends the trace before `backward()`. It leaves detached,
  and `spent` gives it the autograd node it would have had: one that raises when it is asked for gradients again.

What is not torch's own (an overridden step, hooks, a closure) is left to PyTorch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch._dynamo import config, output_graph, side_effects
from torch._dynamo.guards import GuardBuilder, install_guard
from torch._dynamo.source import AttrSource, FloatTensorSource, OptimizerSource
from torch._dynamo.utils import unpack_iterable
from torch._dynamo.variables import ConstantVariable, GetAttrVariable, UserFunctionVariable, builder
from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.builder import GraphArg
from torch._dynamo.variables.ctx_manager import GradModeVariable
from torch._dynamo.variables.lazy import LazyVariableTracker
from torch._dynamo.variables.optimizer import ArgMappingException, GuardInstallException, OptimizerVariable
from torch._dynamo.variables.tensor import TensorVariable
from torch._dynamo.variables.user_defined import UserDefinedObjectVariable
from torch.optim import optimizer as torch_optimizer

from ..device import _torch_internals as internals

_SPENT = "tpu_lab_spent"
"""Key in the meta of a node whose value leaves the graph detached because its autograd graph is used up."""
_CHECK = "_validate_outputs_safe_for_autograd_nodes"
_LEARNING_RATE = "['lr']"
"""How the source of a learning rate ends."""
_TENSOR_RATES = (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD)
"""Optimizers whose code takes a tensor for a learning rate in every form."""
_OPTIMIZERS = os.path.dirname(torch_optimizer.__file__) + os.sep


class CompiledStep(torch.autograd.Function):
    """The autograd node of a tensor whose backward pass ran inside a compiled training step."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, anchor: torch.Tensor) -> torch.Tensor:
        """The tensor; `anchor` is what makes it require a gradient."""
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Raises RuntimeError, as autograd does for a graph that is gone."""
        raise RuntimeError(
            "Trying to backward through the graph a second time: the first backward() ran inside a compiled training step, which keeps "
            "nothing for another. Specify retain_graph=True there if you need to backward twice."
        )


def spent(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, requiring a gradient that it cannot give any more."""
    with torch.enable_grad():
        made: torch.Tensor = CompiledStep.apply(tensor, torch.zeros((), requires_grad=True))  # type: ignore[no-untyped-call]
    return made


def spent_outputs(graph: torch.fx.GraphModule) -> tuple[int, ...]:
    """The positions of a Dynamo graph's outputs that have to pass through `spent`."""
    outputs = next(node for node in graph.graph.nodes if node.op == "output").args[0]
    if not isinstance(outputs, (tuple, list)):
        return ()
    return tuple(i for i, node in enumerate(outputs) if isinstance(node, torch.fx.Node) and node.meta.get(_SPENT))


def holds_backward(graph: torch.fx.GraphModule) -> bool:
    """Whether a Dynamo graph computes gradients itself."""
    return any(node.op == "call_function" and node.target is torch.autograd.grad for node in graph.graph.nodes)


def hooked(values: Sequence[Any]) -> bool:
    """Whether a leaf among the inputs of a graph has a hook on its gradient, which the gradients of a graph do not pass."""
    leaves = (value for value in values if isinstance(value, torch.Tensor) and value.requires_grad and value.is_leaf)
    return any(leaf._backward_hooks or leaf._post_accumulate_grad_hooks for leaf in leaves)


def is_plain_step(optimizer: torch.optim.Optimizer) -> bool:
    """Whether `optimizer.step()` is torch's own function without hooks, so that it may be traced with what is before it."""
    return _unwrapped(optimizer) is not None


def _unwrapped(optimizer: torch.optim.Optimizer) -> Any:
    """The `step` of an optimizer without profiling, hooks and graph breaks; None where hooks are to be called, or Dynamo does not trace it."""
    held = optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks
    if held or torch_optimizer._global_optimizer_pre_hooks or torch_optimizer._global_optimizer_post_hooks:
        return None
    groups = optimizer.param_groups
    if any(group.get("fused") for group in groups) or not _on_device(optimizer):  # PyTorch keeps Dynamo out of fused ones
        return None
    step: Any = getattr(optimizer.step, "__func__", optimizer.step)
    while hasattr(step, "__wrapped__"):
        if not step.__module__.startswith("torch.optim"):
            return None
        step = step.__wrapped__
    return step if step.__module__.startswith("torch.optim") else None


def _on_device(optimizer: torch.optim.Optimizer) -> bool:
    return all(parameter.device.type == "tpu" for group in optimizer.param_groups for parameter in group["params"])


@contextmanager
def whole_steps() -> Iterator[None]:
    """Inside, a compiled function that calls `backward()` and `optimizer.step()` is one graph where Dynamo can trace it as one."""
    kind: Any = OptimizerVariable
    graphs: Any = output_graph.OutputGraph
    builders: Any = builder
    traced = {"call_method": _call_method, "var_getattr": _var_getattr, "wrap_tensor": _wrap_tensor}
    changes = [(kind, name, make(vars(kind)[name])) for name, make in traced.items()]
    changes.append((graphs, _CHECK, _detaching(getattr(graphs, _CHECK))))
    changes.append((builders, "get_static_address_type", _as_inputs(builders.get_static_address_type)))
    changes.append((TensorVariable, "call_method", _past_device_modes(TensorVariable.call_method)))
    changes.append((TensorVariable, "method_attr_grad", _own_none(TensorVariable.method_attr_grad)))
    changes.append((builder.VariableBuilder, "wrap_symfloat", _wrap_float(builder.VariableBuilder.wrap_symfloat)))
    before = [(owner, name, vars(owner)[name]) for owner, name, _ in changes]
    for change in changes:
        setattr(*change)
    try:
        with config.patch(trace_autograd_ops=True):
            yield
    finally:
        for change in before:
            setattr(*change)


def _as_inputs(address_type: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Parameters and optimizer state are inputs of the graph, not part of it by their address: only CUDA graphs gain by that."""
    return lambda tensor: "unguarded" if address_type(tensor) == "guarded" else address_type(tensor)


@contextmanager
def _without_device_modes(tx: Any) -> Iterator[None]:
    """Inside, a default device that is set does not stand between a call and its variable: `backward()` makes no tensors of its own."""
    stack = tx.symbolic_torch_function_state.mode_stack
    held = list(stack)
    if all(isinstance(mode.realize().value, internals.DeviceContext) for mode in held):
        stack.clear()
    try:
        yield
    finally:
        stack.clear()
        stack.extend(held)


def _past_device_modes(plain: Callable[..., Any]) -> Callable[..., Any]:
    def call_method(self: Any, tx: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        if name != "backward" or not tx.symbolic_torch_function_state.mode_stack:
            return plain(self, tx, name, args, kwargs)
        with _without_device_modes(tx):
            return plain(self, tx, name, args, kwargs)

    return call_method


def _own_none(plain: Callable[..., Any]) -> Callable[..., Any]:
    def method_attr_grad(self: Any, tx: Any) -> Any:
        """PyTorch's, but a None of its own: the caller gives it a source, and `ConstantVariable.create(None)` is one object for all code."""
        found = plain(self, tx)
        return ConstantVariable(None) if found is not None and found.is_python_constant() and found.as_python_constant() is None else found

    return method_attr_grad


def _wrap_float(plain: Callable[..., Any]) -> Callable[..., Any]:
    def wrap_symfloat(self: Any, value: float) -> Any:
        """A learning rate that is a number becomes a 0-dim float64 input: a schedule changes it without another compile."""
        source = self.get_source()
        if not source.name.endswith(_LEARNING_RATE) or not _takes_tensor_rate(self.tx, source):
            return plain(self, value)
        known = self.tx.output.input_source_to_var.get(tensor_source := FloatTensorSource(source))
        if known is not None:
            return known
        install_guard(source.make_guard(GuardBuilder.TYPE_MATCH))
        number = torch.tensor(value, dtype=torch.float64)
        example = builder.wrap_to_fake_tensor_and_record(number, tx=self.tx, is_tensor=False, source=tensor_source)
        proxy = self.tx.output.root_tracer.create_graph_input("learning_rate", type(number), example, source=tensor_source)
        made = builder.wrap_fx_proxy(self.tx, proxy, example_value=example, source=tensor_source)
        proxy.node.meta["grapharg"] = GraphArg(
            source, number, pass_arg_as_tensor=True, fake_tensor=example, is_tensor=False, example_strong_ref=number
        )
        self.tx.output.input_source_to_var[tensor_source] = made
        return made

    return wrap_symfloat


def _takes_tensor_rate(tx: Any, source: Any) -> bool:
    while not isinstance(source, OptimizerSource):
        source = getattr(source, "base", None)
        if source is None:
            return False
    optimizer = tx.output.resolve_source_value(source)
    alone = tx.output.root_tx.f_code.co_filename.startswith(_OPTIMIZERS)  # what PyTorch traces by itself is not `capturable` everywhere
    return type(optimizer) in _TENSOR_RATES and not alone and is_plain_step(optimizer)


def _var_getattr(plain: Callable[..., Any]) -> Callable[..., Any]:
    def var_getattr(self: Any, tx: Any, name: str) -> Any:
        joined = name in ("step", "zero_grad") and is_plain_step(self.value) and (name == "zero_grad" or _pending(self, tx))
        if joined and self.source is not None:
            return GetAttrVariable(self, name, py_type=type(getattr(self.value, name)), source=AttrSource(self.source, name))
        return plain(self, tx, name)

    return var_getattr


def _call_method(plain: Callable[..., Any]) -> Callable[..., Any]:
    def call_method(self: Any, tx: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if name == "_init_group" and (grads := _pending(self, tx)):
            made = _init_group(self, tx, grads, args, kwargs)
            if made is not None:
                return made
        if name == "step" and not args and not kwargs and (step := _unwrapped(self.value)) is not None:
            if hasattr(self.value.step, "_wrapped_by_lr_sched"):
                self.value._opt_called = True  # what a scheduler's wrapper notes; its own code is not traced
            return _without_gradients(tx, lambda: UserFunctionVariable(step).call_function(tx, [self], {}))
        if name == "zero_grad" and _sets_to_none(args, kwargs):
            for parameter in _parameters(self, tx):
                tx.output.side_effects.store_attr(parameter, "grad", ConstantVariable.create(None))
            return ConstantVariable.create(None)
        if name in ("step", "zero_grad"):
            return UserDefinedObjectVariable.var_getattr(self, tx, name).call_function(tx, args, kwargs)
        return plain(self, tx, name, args, kwargs)

    return call_method


def _without_gradients(tx: Any, traced: Callable[[], Any]) -> Any:
    mode = GradModeVariable.create(tx, False, initialized=True)
    mode.enter(tx)
    try:
        return traced()
    finally:
        mode.exit(tx)


def _sets_to_none(args: list[Any], kwargs: dict[str, Any]) -> bool:
    given = [*args, *kwargs.values()]
    return not given or (len(given) == 1 and given[0].is_python_constant() and given[0].as_python_constant() is True)


def _parameters(self: Any, tx: Any) -> Iterator[Any]:
    """The variables of an optimizer's parameters."""
    groups: Any = VariableTracker.build(tx, self.value.param_groups, AttrSource(self.source, "param_groups"))
    for group in LazyVariableTracker.realize_all(groups).items:
        for parameter in unpack_iterable(tx, group.getitem_const(tx, ConstantVariable.create("params"))):
            yield parameter.realize()


def _pending(self: Any, tx: Any) -> dict[torch.Tensor, Any]:
    """The parameters of an optimizer whose gradient is made in the graph, with the variable of that gradient."""
    effects: side_effects.SideEffects = tx.output.side_effects
    found = {}
    for parameter in (p for group in self.value.param_groups for p in group["params"]):
        variable: Any = effects.id_to_variable.get(id(parameter))
        if variable is not None and effects.has_pending_mutation_of_attr(variable, "grad"):
            found[parameter] = effects.load_attr(variable, "grad")
    return found if any(not gradient.is_python_constant() for gradient in found.values()) else {}


def _init_group(self: Any, tx: Any, grads: dict[torch.Tensor, Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    """`OptimizerVariable.call_method` for `_init_group`, with empty tensors where gradients are going to be."""
    before = {parameter: parameter.grad for parameter in grads}
    self._stand_ins = {}
    try:
        given, named = self.get_python_args(*args, **kwargs)
        for parameter, variable in grads.items():
            if variable.is_python_constant():
                parameter.grad = None
            else:
                stand_in = parameter.grad = torch.empty_like(parameter)
                self._stand_ins[id(stand_in)] = stand_in, variable
        returned = self.value._init_group(*given, **named)
        self.map_sources_and_install_guards(tx)
    except (ArgMappingException, GuardInstallException):
        return None
    finally:
        for parameter, gradient in before.items():
            parameter.grad = gradient
    self.update_list_args(tx, args, kwargs, given, named)
    tx.store_global_weakref_by_id(f"__optimizer_{id(self.value)}", self.value)
    self.create_finalizer(tx)
    return ConstantVariable.create(returned)


def _wrap_tensor(plain: Callable[..., Any]) -> Callable[..., Any]:
    def wrap_tensor(self: Any, tx: Any, tensor: torch.Tensor) -> Any:
        stand_in = getattr(self, "_stand_ins", {}).get(id(tensor))
        return stand_in[1] if stand_in is not None else plain(self, tx, tensor)

    return wrap_tensor


def _detaching(validate: Callable[..., Any]) -> Callable[..., Any]:
    def detach_spent(self: Any, outputs: list[Any], tx: Any) -> None:
        """Detaches the outputs whose autograd graph a backward pass in the graph used up."""
        used_up = self.autograd_grad_consumed_grad_fns
        for place, variable in enumerate(outputs) if used_up else ():
            if not variable.is_tensor() or not variable.requires_grad:
                continue
            meta = variable.as_proxy().node.meta.get("example_value")
            if meta.device.type == "tpu" and meta.grad_fn is not None and output_graph.collect_reachable_grad_fns([(meta, None)]) & used_up:
                with _without_device_modes(tx):
                    outputs[place] = _without_gradients(tx, partial(variable.call_method, tx, "detach", [], {}))
                outputs[place].as_proxy().node.meta[_SPENT] = True
        validate(self, outputs, tx)

    return detach_spent
