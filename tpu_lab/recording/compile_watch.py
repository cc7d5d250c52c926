"""What torch.compile did while a block ran: graphs and how often they ran, breaks, functions left uncompiled, recompiles.

Two sources, neither runs anything twice: PyTorch's structured trace (what was compiled inside the block, any backend), and the graphs of
the backend `tpu` that ran in it, also those compiled before. Told to the listener once, at the end of the block.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any

from ..compiler import break_text, events
from ..compiler.events import BreakTold, Captured, CompileListener, Frame, GraphTold, RecompileTold
from ..compiler.structured_trace import Guard, StructuredTrace

_Place = tuple[str, str, int]
_BY_FAILURE = {"BackendCompilerFailed": "backend", "GivenUp": "too_long"}
"""Ids of `BreakReason` by the type of exception that ended a compile."""
_GUARDS_KEPT = 200


class CompileWatch:
    """Tells a listener, at the end of a `with` block, what was compiled and run inside it. `guards`: also what must hold for each graph."""

    def __init__(self, listener: CompileListener, guards: bool = False) -> None:
        self._listener = listener
        self._with_guards = guards
        self._breaks: dict[_Place, BreakTold] = {}
        self._recompiles: list[RecompileTold] = []
        self._failed_guards: dict[str, Guard] = {}
        self._runs: dict[Captured, int] = {}
        self._made: dict[Captured, int] = {}
        self._guards: dict[Captured, tuple[str, ...]] = {}
        self._unguarded: list[Captured] = []
        self._exit = ExitStack()

    def __enter__(self) -> CompileWatch:
        self._exit.enter_context(events.observe(self))
        self._exit.enter_context(StructuredTrace(self))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._exit.close()
        if error is not None:  # it is told itself; that no graph could be made of the code that raised it says nothing more
            self._breaks = {place: told for place, told in self._breaks.items() if not _is_told_of(told, error)}
        self._tell()

    def captured(self, graph: Captured) -> None:
        """A graph of the backend `tpu` was made ready."""
        self._made[graph] = graph.compile_ns
        self._runs.setdefault(graph, 0)
        self._unguarded.append(graph)

    def ran(self, graph: Captured) -> None:
        """A graph of the backend `tpu` runs."""
        self._runs[graph] = self._runs.get(graph, 0) + 1

    def broken(self, text: str) -> None:
        """A graph break was met while tracing."""
        told = break_text.from_trace(text)
        if told is not None:
            self._note(told)

    def recompiling(self, compile_id: str, guard: Guard) -> None:
        """A guard failed."""
        self._failed_guards[compile_id] = guard

    def guards(self, compile_id: str, text: str) -> None:
        """Guards of the function compiled last."""
        if self._with_guards:
            parts = (_readable(part) for part in re.findall(r"\+- [A-Z_]+: (.*)", text))
            found = tuple(dict.fromkeys(part for part in parts if part))[:_GUARDS_KEPT]
            self._guards.update(dict.fromkeys(self._unguarded, found))
        self._unguarded.clear()

    def compiled(self, metrics: Mapping[str, Any]) -> None:
        """A compile ended. Recompiles are told with their seconds, failures that are no graph break as breaks."""
        failure, words = metrics.get("fail_type") or "", str(metrics.get("fail_reason") or "")
        if metrics.get("recompile_reason") or "recompile limit" in words:
            self._recompiles.append(self._recompile(metrics, words if failure else ""))
        elif failure and failure != "TorchRuntimeError" and metrics.get("co_name"):
            told = break_text.parse(words or failure)
            frame = _failing_frame(metrics)
            self._note(replace(told, frame=break_text.named(frame), reason=_BY_FAILURE.get(failure) or break_text.reason_left(told), uncompiled=True))

    def _recompile(self, metrics: Mapping[str, Any], failure: str) -> RecompileTold:
        id = str(metrics.get("compile_id") or "")
        guard = self._failed_guards.pop(id.strip("[]"), None)
        text = str(metrics.get("recompile_reason") or failure)
        frames = [f for f in break_text.frames_in(text) if break_text.is_users(f.filename)]
        own = Frame(metrics.get("co_filename") or "", int(metrics.get("co_firstlineno") or 0), str(metrics.get("co_name") or ""))
        where = frames[-1] if frames else own
        where = break_text.named(replace(where, function=own.function or where.function))
        message = guard.expression if guard is not None else " ".join(text.partition("\n")[0].split())
        if guard is not None and "mismatch" in message:
            message = f"{message}: {guard.new}, not {guard.old}"
        version = id.rpartition("/")[2]
        return RecompileTold(
            message,
            where,
            int(float(metrics.get("entire_frame_compile_time_s") or 0.0) * 1e9),
            "limit" if failure else "",
            *((guard.expression, guard.old, guard.new) if guard is not None else ("", "", "")),
            int(version) + 1 if version.isdigit() else 0,
            _limit(),
        )

    def _note(self, told: BreakTold) -> _Place:
        """Keeps one break for each kind and line; what is known of it adds up."""
        frame = told.frame or Frame("", 0)
        place = (told.id or told.message.partition("\n")[0], frame.filename, frame.line)
        if not told.id:  # what Dynamo notes at a graph may be a word only, where the trace told the rest
            place = next((known for known in self._breaks if known[1:] == place[1:] and frame.filename), place)
        known = self._breaks.get(place)
        if known is None:
            self._breaks[place] = told
        else:
            uncompiled = known.uncompiled or told.uncompiled
            stack = max(known.stack, told.stack, key=len)
            self._breaks[place] = replace(known, uncompiled=uncompiled, stack=stack, reason=known.reason or told.reason)
        return place

    def _tell(self) -> None:
        ends = {graph: self._note(graph.broken) for graph in self._runs if graph.broken is not None}
        counted = {place: self._counted(told, [g for g, end in ends.items() if end == place]) for place, told in self._breaks.items()}
        for told in counted.values():
            self._listener.graph_break(told)
        for recompile in self._recompiles:
            self._listener.recompile(recompile)
        for graph, runs in self._runs.items():
            programs = sum(holder.program_count for holder in graph.programs)
            end = counted[ends[graph]] if graph in ends else None
            where, made = break_text.named(graph.frame), self._made.get(graph, 0)
            guards = self._guards.get(graph, ())
            self._listener.graph(GraphTold(graph.name, where, graph.nodes, made, runs, programs, graph.sizes, end, guards))

    def _counted(self, told: BreakTold, ended: list[Captured]) -> BreakTold:
        """A break with how often it was passed, and what graphs that go on after it cost."""
        passed = [sum(self._runs[graph] for graph in versions) for versions in _by_function(ended)]
        begun = [graph for graph in self._made if _begins_after(graph, told)]
        return replace(told, count=max([1, *passed]), graphs=len(begun), graph_ns=sum(self._made[graph] for graph in begun))


def _failing_frame(metrics: Mapping[str, Any]) -> Frame:
    """Where a compile failed; the function that was compiled where that is not the user's code."""
    file, name = metrics.get("fail_user_frame_filename") or "", str(metrics["co_name"])
    if break_text.is_users(file) and file:
        return Frame(file, int(metrics.get("fail_user_frame_lineno") or 0), name)
    return Frame(metrics.get("co_filename") or "", int(metrics.get("co_firstlineno") or 0), name)


def _is_told_of(told: BreakTold, error: BaseException) -> bool:
    """Whether a break is only the exception that then came out."""
    if told.id == break_text.RAISED:
        return f"raised exception {type(error).__name__}(" in told.message
    return told.uncompiled and not told.id and told.message.strip() in (type(error).__name__, str(error).partition("\n")[0].strip())


def _by_function(graphs: Iterable[Captured]) -> Iterable[list[Captured]]:
    """Graphs by the function they come from: versions of one function add up, a function and the one that calls it do not."""
    found: dict[Frame, list[Captured]] = {}
    for graph in graphs:
        found.setdefault(replace(graph.frame, line=0), []).append(graph)
    return found.values()


def _begins_after(graph: Captured, told: BreakTold) -> bool:
    """Whether a graph goes on where this break ended one."""
    at = (graph.frame.filename, graph.resumed_at)
    return bool(graph.resumed_at) and any((frame.filename, frame.line) == at for frame in told.stack)


def _readable(guard: str) -> str:
    """A guard without PyTorch's bookkeeping: names as in the code, no source comments, no addresses. Empty: none of the user's."""
    text = re.sub(r"L\['(\w+)'\]", r"\1", guard.partition("  #")[0]).strip()
    if text.startswith("___check_global_state"):
        return "grad mode, autocast, default dtype and number of threads are the same"
    if "_dynamo_" in text or text.startswith(("___check_torch_function", "torch._functorch", "utils_device", "___skip_backend_check")):
        return ""
    return re.sub(r"(___check_\w+)\((.*), \d{6,}\)", r"\1(\2)", text)


def _limit() -> int:
    """With this many versions of a function PyTorch stops compiling it."""
    from ..device import _torch_internals as internals

    return internals.recompile_limit()
