"""Operators that take operators or graphs: control flow, shared subgraphs, and the random state of recomputed operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from torch.fx import Node

from ...lowering.promotion import Number
from ...lowering.rng import Rng

if TYPE_CHECKING:
    from .interpret import LoweredGraph
    from .run import Run


def is_served(node: Node) -> bool:
    """True if a graph can hold this higher-order node."""
    return node.target.__name__ in _RUNNERS  # type: ignore[union-attr]


def operators_called(node: Node) -> list[Any]:
    """The ATen operators that a higher-order node itself calls."""
    place = {"run_and_save_rng_state": 0, "run_with_rng_state": 1, "with_effects": 1}.get(node.target.__name__)  # type: ignore[union-attr]
    return [] if place is None else [node.args[place]]


def refuse_random_branches(node: Node, subgraphs: dict[str, LoweredGraph]) -> None:
    """Raises NotImplementedError for random operators in a branch or loop: how far they move the random state is only known afterwards."""
    name = node.target.__name__  # type: ignore[union-attr]
    branches = [subgraphs[str(n.target)] for n in node.all_input_nodes if str(n.target) in subgraphs]
    if name in ("cond", "while_loop") and any(branch.random for branch in branches):
        raise NotImplementedError(f"{name} with a random operator inside does not run on the device tpu; draw the numbers outside and pass them in")


def run(interpreter: Run, node: Node) -> Any:
    """The value of a higher-order node: a list of its results."""
    return _RUNNERS[node.target.__name__](interpreter, node)  # type: ignore[union-attr]


def _run_and_save(interpreter: Run, node: Node) -> list[Any]:
    """An operator that backward runs again: the random state before it is a result of its own."""
    from .run import OpCall

    rng = interpreter.rng
    assert rng is not None, "a graph with random operators runs with an Rng"
    state = rng.state()
    return [state, interpreter.operator(OpCall(node.args[0], tuple(node.args[1:]), node.kwargs))]


def _run_with(interpreter: Run, node: Node) -> Any:
    from .run import OpCall

    state = interpreter.resolve(node.args[0])
    return interpreter.operator(OpCall(node.args[1], tuple(node.args[2:]), node.kwargs), Rng(state))


def _with_effects(interpreter: Run, node: Node) -> list[Any]:
    """An operator that may raise (`_linalg_check_errors`), kept in order by a token, which is nothing here."""
    from .run import OpCall

    results = interpreter.operator(OpCall(node.args[1], tuple(node.args[2:]), node.kwargs))
    return [None, *(results if isinstance(results, (list, tuple)) else [results])]


def _invoke(interpreter: Run, node: Node) -> list[Any]:
    """A subgraph used in several places (`invoke_subgraph(graph, name, *operands)`): written out at each of them."""
    graph, _, *operands = interpreter.resolve(node.args)
    result = graph(operands, interpreter.rng)
    if result.found is not None:
        interpreter.flags.append(result.found)
    interpreter.asserted.extend(result.asserted)
    return result.outputs  # type: ignore[no-any-return]


def _cond(interpreter: Run, node: Node) -> list[Any]:
    predicate, yes, no, operands = interpreter.resolve(node.args)
    operands = [_array(v) for v in operands]
    outputs, flag = lax.cond(_array(predicate).reshape(()), _branch(yes), _branch(no), operands)
    interpreter.flags.append(flag)
    return list(outputs)


def _while_loop(interpreter: Run, node: Node) -> list[Any]:
    condition, body, carried, fixed = interpreter.resolve(node.args)
    fixed = [_array(v) for v in fixed]

    def goes_on(state: tuple[list[Array], Array]) -> Array:
        return _array(condition([*state[0], *fixed]).outputs[0]).reshape(())

    def step(state: tuple[list[Array], Array]) -> tuple[list[Array], Array]:
        outputs, flag = _branch(body)([*state[0], *fixed])
        return outputs, jnp.maximum(state[1], flag)

    outputs, flag = lax.while_loop(goes_on, step, ([_array(v) for v in carried], jnp.zeros((), np.uint8)))
    interpreter.flags.append(flag)
    return list(outputs)


def _branch(graph: LoweredGraph) -> Callable[[Sequence[Any]], tuple[list[Array], Array]]:
    def call(operands: Sequence[Any]) -> tuple[list[Array], Array]:
        result = graph(operands)
        flag = jnp.zeros((), np.uint8) if result.found is None else result.found
        return [_array(v) for v in result.outputs], flag

    return call


def _array(value: Any) -> Array:
    return value.value if isinstance(value, Number) else jnp.asarray(value)


_RUNNERS: dict[str, Callable[[Run, Node], Any]] = {
    "run_and_save_rng_state": _run_and_save,
    "run_with_rng_state": _run_with,
    "with_effects": _with_effects,
    "invoke_subgraph": _invoke,
    "cond": _cond,
    "while_loop": _while_loop,
}
