"""Where the nodes of a graph come from: file, line, function, module path, forward or backward."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.fx import Node

from ..device.graph.nodes import name_of
from ..record.privacy import short_name
from ..record.program import SourceOp

_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+)$')
_OURS = (str(torch.__path__[0]) + os.sep, str(Path(__file__).parents[1]) + os.sep)
"""PyTorch's folder and this package's."""
OWN_FRAME = "<compile_for>"
"""The file that the function around a module, which `compile_for` makes, is said to be in."""
_MODULE_STEP = re.compile(r"\._modules\['([^']*)'\]|\['([^']*)'\]|\[(\d+)\]")


Place = tuple[str, int, str]
"""File (as shown), line and function; ("", 0, "") where it is not known."""


def source_ops(graph: torch.fx.Graph, first: int, phase: str, forward: dict[int, str], site: Place) -> Iterator[SourceOp]:
    """The ops of a graph, ids numbered from `first` as `LoweredGraph` numbers them.

    `phase` is the graph's. `forward` maps autograd's sequence numbers to ids: a forward graph fills it, a backward graph reads it.
    `site` is the place of ops that name no code but PyTorch's: where the graph was called (`optimizer.step()`).
    """
    for index, node in enumerate(graph.nodes):
        if node.op != "call_function" or name_of(node.target) == "getitem":
            continue
        id = f"n{first + index}:{name_of(node.target)}"
        sequence = node.meta.get("seq_nr", -1)
        if phase == "backward":
            belongs = forward.get(sequence, "")
        else:
            belongs = ""
            forward[sequence] = id
        file, line, function = place_of(node) or site
        yield SourceOp(id, str(node.target), file, line, function, module_of(node), phase, belongs)


def place_of(node: Node) -> Place | None:
    """The innermost frame of a node that is neither PyTorch's nor made by this package; None if there is none."""
    frames = [match for text in str(node.meta.get("stack_trace") or "").splitlines() if (match := _FRAME.match(text))]
    for frame in reversed(frames):
        if not frame["file"].startswith(_OURS) and frame["file"] != OWN_FRAME:
            return short_name(frame["file"]), int(frame["line"]), frame["function"]
    return None


def calling_place(frame: FrameType | None) -> Place:
    """The innermost frame at or above this one that is neither PyTorch's nor this package's."""
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((*_OURS, "<")) and "torch_dynamo" not in frame.f_code.co_name:
            return short_name(name), frame.f_lineno, frame.f_code.co_name
        frame = frame.f_back
    return "", 0, ""


def module_of(node: Node) -> str:
    """Path of the innermost module a node was traced in, or its forward node was: `layers.0.mlp`."""
    stack: Any = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    if not stack:
        return ""
    path = str(list(stack.values())[-1][0])
    return module_path(path)


def module_path(text: str) -> str:
    """`L['self']._modules['layers']._modules['0'].mlp` as `layers.0.mlp`; the outermost module itself is the empty path."""
    rest = re.sub(r"^(?:L|G)\['[^']*'\]", "", text)
    steps = _MODULE_STEP.sub(lambda m: "." + next(g for g in m.groups() if g is not None), rest)
    return re.sub(r"\.+", ".", steps).strip(".")
