"""The ops of a run as a pandas DataFrame. pandas is imported only here, and only when asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import MissingPackageError
from ..record.ops import NOT_BACKWARD, spec_text
from ..record.run import Run
from ..record.totals import kernel_count

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]


def ops_frame(run: Run) -> pandas.DataFrame:
    """One row for each op, in the order they ran.

    `line` and `column` are of the cell if the op was called from one, else of the nearest user file; `forward_op` is the id of a
    backward op's forward op. Missing values are pandas' NA. Raises MissingPackageError if pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingPackageError("Run.to_pandas needs the package pandas, which is not installed", remedy="pip install pandas") from error
    return pd.DataFrame(_columns(run)).convert_dtypes()


def _columns(run: Run) -> dict[str, Sequence[Any]]:
    ops = run.ops
    programs = [run.programs[p] for p in ops.program]
    where = [cell if cell >= 0 else user for cell, user in zip(ops.cell_location, ops.location, strict=True)]

    def place(field: Callable[[int], Any]) -> list[Any]:
        return [field(index) if index >= 0 else None for index in where]

    return {
        "id": ops.id,
        "op": [p.op for p in programs],
        "kind": [p.kind for p in programs],
        "module": [run.modules[m].path if m >= 0 else None for m in ops.module],
        "source": place(lambda i: run.sources[run.locations[i].source].name),
        "line": place(lambda i: run.locations[i].line),
        "column": place(lambda i: run.locations[i].column),
        "function": place(lambda i: run.locations[i].function),
        "backward": [f != NOT_BACKWARD for f in ops.forward],
        "forward_op": [f if f >= 0 else None for f in ops.forward],
        "inputs": [" ".join(spec_text(s) for s in p.inputs) for p in programs],
        "outputs": [" ".join(spec_text(s) for s in p.outputs) for p in programs],
        "start_ns": ops.start_ns,
        "duration_ns": ops.duration_ns,
        "bytes": [p.bytes for p in programs],
        "flops": [p.flops for p in programs],
        "kernels": [kernel_count(p)[0] for p in programs],
        "program": ops.program,
        "thread": ops.thread,
    }
