"""`torch.tpu.Stream` and `Event`. XLA runs programs as soon as their operands are there, so there is one stream; events time on the host."""

from __future__ import annotations

import time
from typing import Any

import torch

from .devices import index_of
from .devices import synchronize as wait_for_device


class Stream:
    """The device's stream. `synchronize` waits for the device; ordering is by data, so `wait_*` have nothing to do."""

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        index_of(device)
        self.device_index = 0
        self.device_type = "tpu"
        self.priority = priority
        self.stream_id = 0

    @property
    def device(self) -> torch.device:
        """`tpu:0`."""
        return torch.device("tpu:0")

    def synchronize(self) -> None:
        """Waits for the device."""
        wait_for_device()

    def query(self) -> bool:
        """True once everything given to the device is done; waits for that."""
        wait_for_device()
        return True

    def wait_event(self, event: Event) -> None:
        """Nothing to do: programs wait for their operands."""

    def wait_stream(self, stream: Any) -> None:
        """Nothing to do: programs wait for their operands."""

    def record_event(self, event: Event | None = None) -> Event:
        """Records an event (a new one if none is given)."""
        event = event or Event()
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream)

    def __hash__(self) -> int:
        return hash(("tpu stream", self.stream_id))

    def __repr__(self) -> str:
        return "<torch.tpu.Stream device=tpu:0>"


class Event:
    """A moment, taken on the host after the device has done everything before it. `elapsed_time` is in milliseconds."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        if interprocess:
            raise NotImplementedError("Event(interprocess=True): events of the device tpu cannot be shared between processes")
        self.enable_timing = enable_timing
        self._at: float | None = None

    def record(self, stream: Any = None) -> None:
        """Takes the moment; waits for the device if the event was made with `enable_timing`."""
        if self.enable_timing:
            wait_for_device()
        self._at = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        """Nothing to do: programs wait for their operands."""

    def query(self) -> bool:
        """True."""
        return True

    def synchronize(self) -> None:
        """Waits for the device."""
        wait_for_device()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to a later one. Raises ValueError or RuntimeError unless both were recorded with `enable_timing=True`."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._at is None or end_event._at is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end_event._at - self._at) * 1e3


_stream = Stream()


def current_stream(device: Any = None) -> Stream:
    """The device's stream."""
    index_of(device)
    return _stream


default_stream = current_stream


def set_stream(stream: Any) -> None:
    """Chooses the stream; there is one."""


def stream(stream: Any) -> Any:
    """`with torch.tpu.stream(s):`, as on CUDA."""
    return stream if stream is not None else _stream
