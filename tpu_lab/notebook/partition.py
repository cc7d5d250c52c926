"""How each statement of a region is best run, seen at the moment it first runs.

Only the namespace tells whether `Net()` makes a module, `tokenizer(text)` leaves PyTorch, or `xs.append(y)` is bookkeeping
of Python's. The answer changes how fast a cell runs and where its programs end, never what it computes.
"""

from __future__ import annotations

import ast
import builtins
import os
import sys
import sysconfig
from collections import deque
from collections.abc import Iterator, Mapping, Sequence, Set
from enum import Enum
from functools import lru_cache
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

from .default_device import FACTORY_NAMES


class Way(Enum):
    """How a statement runs. The value is the reason (an id of `BreakReason`) if it separates two programs, or empty."""

    COMPILED = ""
    ALONE = "alone"
    """Compiled, but not together with others: an optimizer step ends programs inside itself."""
    LAST = "last"
    """Compiled, as the last of its program: it reads a value into Python."""
    ITEM = "item"
    """Plain: it only reads a value into Python."""
    BACKWARD = "backward"
    """Plain: autograd runs the compiled backward programs."""
    CALL = "call"
    """Plain: it calls code outside PyTorch."""
    SET_UP = "set_up"
    """Plain: it makes or arranges modules, optimizers, loaders, seeds; nothing to compile."""
    BOOKKEEPING = "bookkeeping"
    """Plain: it changes a Python list or dict, whose length would become part of the program."""

    @property
    def plain(self) -> bool:
        """True: outside compiled programs."""
        return self not in (Way.COMPILED, Way.ALONE, Way.LAST)

    @property
    def separates(self) -> bool:
        """True: between two compiled parts this is a graph break. backward() is none: no other place of the call would serve better."""
        return self in (Way.ITEM, Way.CALL)


_ABSENT = object()
_FOLLOWED = ("torch", "__main__", "builtins", "_operator", "operator", "math", "itertools", "functools", "collections")
"""Roots of code that Dynamo follows without being asked twice."""
_STANDARD_LIBRARY = sysconfig.get_paths()["stdlib"] + os.sep
_MAKERS = (
    torch.nn.Module,
    torch.optim.Optimizer,
    torch.optim.lr_scheduler.LRScheduler,
    torch.utils.data.Dataset,
    torch.utils.data.DataLoader,
    torch.Generator,
)
_ARRANGERS = (torch.optim.lr_scheduler.LRScheduler, torch.utils.data.DataLoader, torch.Generator)
_SET_UP_NAMES = frozenset(
    (
        "manual_seed",
        "seed",
        "set_rng_state",
        "set_default_device",
        "set_default_dtype",
        "set_grad_enabled",
        "use_deterministic_algorithms",
        "save",
        "load",
        "compile",
        "set_num_threads",
        "from_numpy",
    )
)
_SET_UP_PARTS = (
    "torch.random",
    "torch.serialization",
    "torch.utils",
    "torch.cuda",
    "torch.tpu",
    "torch.accelerator",
    "torch.compiler",
    "torch.profiler",
    "torch.hub",
    "torch._dynamo",
    "torch.nn.init",
)
_MODULE_SET_UP = frozenset(
    (
        "to",
        "cpu",
        "cuda",
        "tpu",
        "half",
        "float",
        "double",
        "bfloat16",
        "type",
        "train",
        "eval",
        "apply",
        "compile",
        "state_dict",
        "load_state_dict",
        "requires_grad_",
        "zero_grad",
        "share_memory",
        "to_empty",
    )
)
_TO_PYTHON = frozenset(("item", "tolist", "numpy"))
_CHANGES = frozenset(
    (
        "append",
        "extend",
        "insert",
        "add",
        "update",
        "pop",
        "popleft",
        "appendleft",
        "setdefault",
        "remove",
        "clear",
        "discard",
    )
)


def way_of(statement: ast.stmt, namespace: Mapping[str, Any], made_here: Set[str]) -> Way:
    """How to run a statement. Names that are not in the namespace yet are taken for tensors.

    `made_here` are the names that the cell itself binds: the step of an optimizer among them stays plain, for Dynamo makes a
    program for that one object, and the next run of the cell has another.
    """
    reads_value = False
    for node in ast.walk(statement):
        if isinstance(node, ast.Call):
            way = _way_of_call(node.func, namespace)
            if way is Way.ALONE and isinstance(node.func, ast.Attribute) and _names(node.func.value) & made_here:
                return Way.SET_UP
            if way is not Way.COMPILED and way is not Way.LAST:
                return way
            reads_value = reads_value or way is Way.LAST
    if reads_value:
        return Way.ITEM if _only_reads(statement) else Way.LAST
    return Way.COMPILED


def whole_step(statements: Sequence[ast.stmt], namespace: Mapping[str, Any], made_here: Set[str]) -> int:
    """How many of the statements, from the first one, may be one program with `loss.backward()` and `optimizer.step()` in it; 0: none."""
    count, computed = 0, False
    for number, statement in enumerate(statements):
        way = way_of(statement, namespace, made_here)
        if way is Way.BACKWARD and not computed and _is_call(statement, "backward"):
            computed = True
        elif way is Way.ALONE and computed and _is_plain_step(statement, namespace):
            count = number + 1
        elif way is Way.COMPILED or (number and _clears_gradients(statement, namespace)):
            count += bool(count)
        else:
            break
    return count


def _is_call(statement: ast.stmt, method: str) -> bool:
    """Whether a statement is `name.method()`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or call.args or call.keywords or not isinstance(call.func, ast.Attribute):
        return False
    return call.func.attr == method and isinstance(call.func.value, ast.Name)


def _is_plain_step(statement: ast.stmt, namespace: Mapping[str, Any]) -> bool:
    from ..compiler.whole_step import is_plain_step

    return _is_call(statement, "step") and is_plain_step(namespace[statement.value.func.value.id])  # type: ignore[attr-defined]


def _clears_gradients(statement: ast.stmt, namespace: Mapping[str, Any]) -> bool:
    return _is_call(statement, "zero_grad") and isinstance(namespace.get(statement.value.func.value.id), torch.optim.Optimizer)  # type: ignore[attr-defined]


def _names(node: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _only_reads(statement: ast.stmt) -> bool:
    """Whether every tensor method called is one that reads the value of a plain name: `total += loss.item()`."""
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
    return all(
        isinstance(c.func, ast.Attribute) and c.func.attr in (*_TO_PYTHON, "detach", "cpu") and isinstance(c.func.value, (ast.Name, ast.Call))
        for c in calls
    )


def _way_of_call(callee: ast.expr, namespace: Mapping[str, Any]) -> Way:
    if isinstance(callee, ast.Attribute):
        holder = _resolve(callee.value, namespace)
        if holder is _ABSENT or isinstance(holder, torch.Tensor):
            return Way.BACKWARD if callee.attr == "backward" else Way.LAST if callee.attr in _TO_PYTHON else Way.COMPILED
        if not isinstance(holder, (ModuleType, type)):
            return _way_of_method(holder, callee.attr)
    target = _resolve(callee, namespace)
    if target is _ABSENT or isinstance(target, torch.nn.Module):
        return Way.COMPILED
    if isinstance(target, type):
        return Way.SET_UP if issubclass(target, _MAKERS) or target is torch.set_grad_enabled else _followed(target.__module__)
    if isinstance(target, FunctionType) and _root(target.__module__) not in ("torch", "__main__") and makes_tensors(target):
        return Way.CALL
    if isinstance(target, (FunctionType, BuiltinFunctionType, MethodType)) or hasattr(target, "__name__"):
        module, name = _module_of(target), str(getattr(target, "__name__", ""))
        set_up = _root(module) == "torch" and (name in _SET_UP_NAMES or module.startswith(_SET_UP_PARTS))
        return Way.SET_UP if set_up else _followed(module)
    return _followed(type(target).__module__)


def makes_tensors(function: FunctionType, seen: Set[int] = frozenset()) -> bool:
    """Whether a function, or one of its file that it calls, mentions a factory function or constructs a module.

    In another file these follow that file's idea of the default device, which is not the cell's; traced together with the
    cell they would follow the cell's.
    """
    names = _names_of_code(function.__code__)
    if names & FACTORY_NAMES:
        return True
    seen = seen | {id(function)}
    for name in names:
        other = function.__globals__.get(name)
        if isinstance(other, type) and issubclass(other, _MAKERS):
            return True
        if isinstance(other, FunctionType) and other.__module__ == function.__module__ and id(other) not in seen and makes_tensors(other, seen):
            return True
    return False


def _names_of_code(code: CodeType) -> set[str]:
    return set(code.co_names).union(*(_names_of_code(c) for c in code.co_consts if isinstance(c, CodeType)))


def _module_of(function: Any) -> str:
    """Where a function belongs; a builtin method tells it only through the object or class it is bound to."""
    module, owner = getattr(function, "__module__", None), getattr(function, "__self__", None)
    if not module:
        module = owner.__name__ if isinstance(owner, ModuleType) else (owner if isinstance(owner, type) else type(owner)).__module__
    return str(module)


def _way_of_method(holder: Any, method: str) -> Way:
    if isinstance(holder, torch.nn.Module):
        return Way.SET_UP if method in _MODULE_SET_UP else Way.COMPILED
    if isinstance(holder, torch.optim.Optimizer):
        return Way.ALONE if method == "step" else Way.SET_UP
    if isinstance(holder, _ARRANGERS):
        return Way.SET_UP
    if isinstance(holder, (list, dict, set, deque)) and method in _CHANGES:
        return Way.BOOKKEEPING
    return _followed(type(holder).__module__)


def _followed(module: str) -> Way:
    return Way.COMPILED if _is_followed(module) else Way.CALL


@lru_cache(maxsize=1024)
def _is_followed(module: str) -> bool:
    """Whether Dynamo should follow code of a module: PyTorch's, the user's own files, and packages that work with torch."""
    if _root(module) in _FOLLOWED:
        return True
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    if loaded is None or not file or (file.startswith(_STANDARD_LIBRARY) and not _is_installed(file)):
        return False
    return not _is_installed(file) or any(value is torch for value in vars(loaded).values())


def _is_installed(file: str) -> bool:
    return f"{os.sep}site-packages{os.sep}" in file or f"{os.sep}dist-packages{os.sep}" in file


def _root(module: str | None) -> str:
    return (module or "").partition(".")[0]


def _resolve(node: ast.expr, namespace: Mapping[str, Any]) -> Any:
    """The object behind `a.b.c`, following attributes of modules and classes only: this must run no code of the user's."""
    if isinstance(node, ast.Name):
        return namespace.get(node.id, getattr(builtins, node.id, _ABSENT))
    if isinstance(node, ast.Attribute):
        holder = _resolve(node.value, namespace)
        if isinstance(holder, (ModuleType, type)):
            return getattr(holder, node.attr, _ABSENT)
    return _ABSENT


_ABOUT_ONLY = frozenset(("len", "isinstance", "type", "id", "hasattr", "callable"))
"""Builtins that ask about a tensor without computing with it."""


def worth_compiling(statements: Sequence[ast.stmt], namespace: Mapping[str, Any]) -> bool:
    """Whether the statements compute with anything that tensors may come from."""
    nodes = [node for statement in statements for node in _computing(statement)]
    if not any(isinstance(n, (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.AugAssign)) for n in nodes):
        return False
    names = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return any(_about_tensors(namespace[name]) for name in names if name in namespace)


def _computing(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement, without those inside `len(...)` and the like."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _ABOUT_ONLY):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from _computing(child)


def _about_tensors(value: Any, depth: int = 2) -> bool:
    if isinstance(value, (torch.Tensor, torch.nn.Module, torch.optim.Optimizer)):
        return True
    if isinstance(value, ModuleType):
        return _root(value.__name__) == "torch"
    if isinstance(value, FunctionType):
        return _root(value.__module__) not in ("builtins", "math", "operator") and _is_followed(value.__module__ or "")
    if isinstance(value, (BuiltinFunctionType, type)):
        return _root(value.__module__) == "torch"
    if depth and isinstance(value, (list, tuple)):
        return any(_about_tensors(v, depth - 1) for v in value[:8])
    if depth and isinstance(value, dict):
        return any(_about_tensors(v, depth - 1) for v in list(value.values())[:8])
    return False
