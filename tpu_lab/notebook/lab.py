"""What the notebook needs of the rest of tpu_lab, in one place: devices, recorders, snapshots, the run store, comparisons.

Everything is imported at first use, so that loading the extension costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ..record.comparison import Comparison, Difference
    from ..record.run import Run
    from .cell import Cell


class Recording(Protocol):
    """A recorder around a block; `run` is the record afterwards."""

    def __enter__(self) -> object: ...

    def __exit__(self, *exception: Any) -> None: ...

    @property
    def run(self) -> Run: ...


class Lab:
    """The real thing. Tests put another one in its place."""

    def recording(self, mode: str, device: str, name: str, cell: Cell) -> tuple[Recording, Any]:
        """A recorder for one run of a cell, and who is to be told of graph breaks."""
        from ..recording.frames import CellText
        from ..recording.recorder import Recorder

        cells = {cell.filename: CellText(name=f"cell {cell.number}", text=cell.text)}
        if device == "tpu" and self.owns_device():
            recorder = Recorder(mode=mode, name=name, device=device, cells=cells, blocking=mode != "fuse")
            return recorder, recorder
        from ..recording.dispatch_recorder import DispatchRecorder

        observer = DispatchRecorder(device, mode=mode, name=name, cells=cells)
        return observer, observer.recorder

    def owns_device(self) -> bool:
        """Whether `tpu` is this package's device; with TorchTPU on a TPU it is not, and runs are only recorded."""
        from .._autoload import state

        return state.outcome == "ready"

    def strict(self, blocking: bool) -> AbstractContextManager[None]:
        """Strict eager mode; `blocking`, or a process that waits already, makes each operator wait, so that times and errors belong to it."""
        if not self.owns_device():
            return nullcontext()
        from ..device.modes import EagerMode, current, set_eager_mode

        waiting = EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING
        return set_eager_mode(waiting if blocking or current() is waiting else EagerMode.DEFER_NEVER)

    @contextmanager
    def deferring(self) -> Iterator[None]:
        """Fused eager mode. What is deferred at the end runs then, as if the cell waited for it."""
        if not self.owns_device():
            yield
            return
        from ..device import deferral
        from ..device.modes import EagerMode, set_eager_mode

        with set_eager_mode(EagerMode.DEFER_AND_FUSE):
            try:
                yield
            finally:
                deferral.cut("synchronize")

    def precision(self, name: str | None) -> AbstractContextManager[Any]:
        """Precision of float32 matrix products: `default`, `high` or `highest`; None leaves it alone."""
        if name is None:
            return nullcontext()
        import torch

        return torch.tpu.precision(torch.tpu.Precision[name.upper()])  # type: ignore[attr-defined, no-any-return]

    def compile_backend(self, device: str) -> str:
        """Name of the torch.compile backend for a device type."""
        return "tpu" if device == "tpu" else "inductor"

    def synchronize(self, device: str) -> None:
        """Waits until the device has done everything it was given."""
        if device != "cpu":
            import torch

            torch.accelerator.synchronize()

    def snapshot(self) -> Any:
        """Notes what every storage and generator of the device holds."""
        if not self.owns_device():
            return None
        from ..device import state

        return state.snapshot()

    def restore(self, snapshot: Any) -> None:
        """Puts the device back to a snapshot, which stays valid."""
        if snapshot is not None:
            from ..device import state

            state.restore(snapshot)

    def release(self, snapshot: Any) -> None:
        """Ends a snapshot."""
        if snapshot is not None:
            from ..device import state

            state.release(snapshot)

    def replay_on_cpu(self) -> AbstractContextManager[None]:
        """Inside, random operators on the CPU draw the numbers that the device would draw."""
        if not self.owns_device():
            return nullcontext()
        from ..device.replay import replay_on_cpu

        return replay_on_cpu()

    def keep(self, run: Run) -> Run:
        """Puts a run into the store."""
        from ..recording.store import store

        return store.add(run)

    def runs(self) -> list[Run]:
        """The kept runs, oldest first."""
        from ..recording.store import store

        return store.runs()

    def find(self, name: str) -> Run:
        """A kept run by id or name. Raises RunNotFoundError."""
        from ..recording.store import store

        return store.get(name)

    def forget_runs(self) -> None:
        """Empties the run store."""
        from ..recording.store import store

        store.clear()

    def show(self, run: Run) -> None:
        """Displays a run where the cell's output goes."""
        from IPython.display import publish_display_data

        publish_display_data(run._repr_mimebundle_())  # type: ignore[no-untyped-call]

    def compare(
        self, runs: Mapping[str, Run], reference: str, differences: Mapping[str, Difference], failures: Mapping[str, str], recorded: bool = False
    ) -> Comparison:
        """Legs of one cell side by side; numbers are compared with those of `reference`. `recorded`: any runs."""
        from ..analysis.compare import compare

        return compare(runs, reference=reference, differences=differences, failures=failures, recorded=recorded)
