"""What Dynamo asks about the device. torch's built-in answer for a device called `tpu` denies float64, float16 and complex, which work here."""

from __future__ import annotations

from typing import Any

import torch
from torch._dynamo import device_interface


class LabInterface(device_interface.DeviceInterface):
    """The device as Dynamo sees it: one device, one stream, every dtype jax has."""

    class Worker:
        """What Inductor's compile workers would ask; there is one device."""

        @staticmethod
        def set_device(device: int) -> None:
            """Nothing to choose."""

        @staticmethod
        def current_device() -> int:
            """0."""
            return 0

        @staticmethod
        def get_device_properties(device: Any = None) -> Any:
            """The device's properties."""
            return torch.get_device_module("tpu").get_device_properties(device)

    @staticmethod
    def is_available() -> bool:
        """True."""
        return True

    @staticmethod
    def device_count() -> int:
        """1."""
        return 1

    @staticmethod
    def current_device() -> int:
        """0."""
        return 0

    @staticmethod
    def set_device(device: Any) -> None:
        """Nothing to choose."""

    @staticmethod
    def synchronize(device: Any = None) -> None:
        """Waits for the device."""
        torch.accelerator.synchronize()

    @staticmethod
    def is_bf16_supported(including_emulation: bool = False) -> bool:
        """True."""
        return True

    @staticmethod
    def is_dtype_supported(dtype: torch.dtype, including_emulation: bool = False) -> bool:
        """True for every dtype the device has."""
        from ..lowering.dtypes import SUPPORTED

        return dtype in SUPPORTED

    @staticmethod
    def get_compute_capability(device: Any = None) -> int:
        """0: there are no generations of XLA:CPU."""
        return 0


_done = False


def register_interface() -> None:
    """Tells Dynamo about the device."""
    global _done
    if _done:
        return
    device_interface.register_interface_for_device("tpu", LabInterface)
    device_interface.register_interface_for_device("tpu:0", LabInterface)
    _done = True
