"""What PyTorch says about a graph break, taken apart: kind, explanation, hints, id, page, user frames.

The texts are those of `torch._dynamo.exc.format_graph_break_message` (torch 2.13), alone, inside the artifact
`dynamo_graph_break_reason` of the structured trace, or two in a row where one break led to another.
"""

from __future__ import annotations

import os
import re
import sysconfig
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..record.break_remedies import useful
from .events import BreakTold, Frame

_BLOCK = re.compile(
    r"^(?:torch\._dynamo\.exc\.\w+: )?(?P<kind>\S[^\n]*)\n  Explanation: (?P<explanation>.*?)\n(?P<hints>(?:  Hint: .*?\n)*?)\n?"
    r"  Developer debug context: (?P<context>[^\n]*)(?P<rest>(?:\n(?!\S| For more)[^\n]*)*)"
    r"(?:\n+ For more details[^\n]*visit: (?P<link>\S+))?",
    re.MULTILINE | re.DOTALL,
)
_HINT = re.compile(r"^  Hint: ", re.MULTILINE)
_FRAME = re.compile(r'^\s*File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<function>[^\n]+)', re.MULTILINE)
_ID = re.compile(r"/gb(\d+)\.html")
_RESUMED = re.compile(r"torch_dynamo_resume_in_(?P<function>.+)_at_(?P<line>\d+)$")
_ON_PURPOSE = os.path.join("torch", "optim", "optimizer.py")
_INSIDE_TORCH = os.sep + "torch" + os.sep
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY = (sysconfig.get_paths()["stdlib"] + os.sep, "<frozen")
_INSTALLED = "-packages" + os.sep
_MACHINERY = tuple(f"{os.sep}{name}{os.sep}" for name in ("IPython", "ipykernel", "traitlets", "tornado", "jax", "jaxlib"))


RAISED = "GB0088"
"""PyTorch's id of a break where the traced code raises an exception."""
_JUMP = "generic_jump "
_PAGE = "https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html"
_BRANCH = BreakTold(message="Data-dependent branching", id="GB0170", link=_PAGE)
"""What Dynamo notes at a graph that ends at a branch is only `generic_jump`; the structured trace has the rest."""


def parse(text: str) -> BreakTold:
    """The first break that a text tells of; without PyTorch's form, its first line is the message."""
    block = _BLOCK.search(text)
    if block is None:
        branch = text.startswith(_JUMP)
        return _BRANCH if branch else BreakTold(message=text.strip().partition("\n")[0])
    hints = tuple(" ".join(hint.split()) for hint in _HINT.split(block["hints"]) if hint.strip())
    found = _ID.search(block["link"] or "")
    return BreakTold(
        message=f"{block['kind'].removeprefix('Graph Break Reason: ')}\n{block['context']}".strip(),
        id=f"GB{found[1]}" if found else "",
        link=block["link"] or "",
        explanation=" ".join(block["explanation"].split()),
        hints=useful(hints),
    )


def with_stack(told: BreakTold, frames: Sequence[Frame]) -> BreakTold | None:
    """The break with its user frames; None for one that PyTorch makes on purpose around an optimizer's step, or that no user's code led to.

    Dynamo also meets functions of the standard library by themselves: a logger that jax calls, for one.
    """
    if frames and (frames[-1].filename.endswith(_ON_PURPOSE) or _called_by_machinery(frames)):
        return None
    users = tuple(named(frame) for frame in frames if is_users(frame.filename))
    return replace(told, stack=users, frame=users[-1] if users else None)


def from_trace(text: str) -> BreakTold | None:
    """A break from the structured trace's artifact; None for one that is no business of the user's."""
    own_words, _, after = text.partition("User code traceback:" if "User code traceback:" in text else "in the following user code:")
    frames = frames_in(after.partition("\nTraceback (most recent call last)")[0])
    told = parse(own_words if _BLOCK.search(own_words) else text)
    left = "results in a skip" in own_words or "another graph break occurred" in text
    return with_stack(replace(told, uncompiled=left, reason=reason_left(told) if left else ""), frames)


def reason_left(told: BreakTold) -> str:
    """Id of `BreakReason` for a function that is left uncompiled."""
    if told.message.startswith("Tracing given up"):
        return "too_long"
    return "raised" if told.id == RAISED else "skipped"


def frames_in(text: str) -> list[Frame]:
    """The frames that a traceback's text names, outermost first."""
    return [Frame(f["file"], int(f["line"]), f["function"].strip()) for f in _FRAME.finditer(text)]


def frames_of(summaries: Iterable[Any]) -> list[Frame]:
    """`traceback.FrameSummary` objects as frames."""
    return [Frame(s.filename, s.lineno or 0, s.name) for s in summaries]


def named(frame: Frame) -> Frame:
    """The frame under the name of the user's function, where Dynamo made a function of the rest of one."""
    resumed = _RESUMED.match(frame.function)
    return replace(frame, function=resumed["function"]) if resumed else frame


def resumed_at(function: str) -> int:
    """The line after which a function that Dynamo made goes on; 0 for any other function."""
    resumed = _RESUMED.match(function)
    return int(resumed["line"]) if resumed else 0


def is_users(filename: str) -> bool:
    """Whether a file is the user's: not PyTorch's, not this package's, not Python's, not the notebook's machinery."""
    return not (_INSIDE_TORCH in filename or filename.startswith(_OWN) or _is_library(filename) or any(part in filename for part in _MACHINERY))


def _called_by_machinery(frames: Sequence[Frame]) -> bool:
    """Whether the innermost frames are Python's own library, called by no code of the user's."""
    caller = next((frame for frame in reversed(frames) if not _is_library(frame.filename)), None)
    return _is_library(frames[-1].filename) and (caller is None or not is_users(caller.filename))


def _is_library(filename: str) -> bool:
    """Whether a file is part of Python itself."""
    return filename.startswith(_LIBRARY) and _INSTALLED not in filename
