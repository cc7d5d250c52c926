"""The errors tpu_lab raises. Each says what was asked, what is accepted and what to do next; each has a stable id.

Where Python or PyTorch has an exception type for the case (ValueError, ImportError, NotImplementedError, ...), the error is
of that type too, so existing `except` clauses keep working. Out of memory is PyTorch's own `torch.OutOfMemoryError`.
"""

from __future__ import annotations

from collections.abc import Iterable


class TpuLabError(Exception):
    """Base of all errors of tpu_lab.

    `asked` is what was asked and did not work, one sentence without a full stop. `accepted` says what would be accepted,
    `remedy` the next step, best as text that can be pasted; either may be empty. `id` is stable across versions.
    """

    id = "TE000"

    def __init__(self, asked: str, *, accepted: str = "", remedy: str = "") -> None:
        self.asked, self.accepted, self.remedy = asked, accepted, remedy
        text = f"{asked}."
        if accepted:
            text += f" Accepted: {accepted}."
        if remedy:
            text += f" Next: {remedy}"
        super().__init__(f"{text} [{self.id}]")

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.asked, self.accepted, self.remedy)


def _rebuild(kind: type[TpuLabError], asked: str, accepted: str, remedy: str) -> TpuLabError:
    return kind(asked, accepted=accepted, remedy=remedy)


class OptionError(TpuLabError, ValueError):
    """An option, mode or argument has a value that is not accepted."""

    id = "TE101"


class MissingPackageError(TpuLabError, ImportError):
    """A package that only this feature needs is not installed."""

    id = "TE102"


class OperatorNotSupportedError(TpuLabError, NotImplementedError):
    """An operator has no lowering here and may not run on the CPU instead."""

    id = "TE202"


class RunNotFoundError(TpuLabError, LookupError):
    """No recorded run has this name or id."""

    id = "TE301"


class RecordError(TpuLabError, ValueError):
    """A saved run cannot be read."""

    id = "TE310"


class RecordTooLargeError(RecordError):
    """A saved run is larger than the reading limits."""

    id = "TE311"


class RecordTooNewError(RecordError):
    """A saved run has a newer major schema version."""

    id = "TE312"


class TargetCompilerError(TpuLabError, RuntimeError):
    """The compiler of a target died, gave an answer that cannot be read, or was cancelled."""

    id = "TE401"


class CacheRefusedError(TpuLabError, PermissionError):
    """The folder of compiled programs is not this user's alone, so nothing is loaded from it."""

    id = "TE410"


def one_of(values: Iterable[str], limit: int = 12) -> str:
    """The accepted names as text: `eager, compile or cpu`; long lists are cut after `limit` names."""
    names = list(values)
    if len(names) > limit:
        return ", ".join(names[:limit]) + f" and {len(names) - limit} more"
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1] if names else ""]))
