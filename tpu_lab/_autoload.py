"""What `import torch` runs through the entry point group `torch.backends`: names the device, and never breaks the import.

Nothing is raised here. Where the device cannot be offered, the reason and its remedy are kept and raised at the first use
of `tpu` (`torch.tpu` or a tensor on it).
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass

TORCH_RANGE = ((2, 13), (2, 14))
"""Tested torch versions: from the first up to, not including, the second."""


@dataclass
class State:
    """What autoload came to: `ready`, `off` (`TPU_LAB_AUTOLOAD=0`), `stepped_aside` or `failed`, with a sentence for the user."""

    outcome: str = "not run"
    reason: str = ""


state = State()


def autoload() -> None:
    """Registers the device `tpu` unless switched off, or another backend owns the key. Raises nothing."""
    try:
        if state.outcome not in ("ready", "failed") and os.environ.get("TPU_LAB_AUTOLOAD", "1").lower() in ("0", "false", "off"):
            state.outcome, state.reason = "off", "tpu_lab is switched off by TPU_LAB_AUTOLOAD=0; unset it and restart Python"
            return  # and torch is not imported: the process of a TPU compiler needs none
        # Not at the top of the file: this import may run the entry point, which needs this module whole.
        import torch  # noqa: F401

        if state.outcome not in ("ready", "failed"):
            _autoload()
    except Exception as error:  # an exception here would break `import torch`: it is kept and shown at the first use
        state.outcome = "failed"
        state.reason = f"tpu_lab could not register the device tpu: {type(error).__name__}: {error}. {remedy()}"
        _keep_for_first_use()


def _keep_for_first_use() -> None:
    """Makes the kept reason the error of whoever uses `tpu`: the name is known, and everything asked of it says what is wrong."""
    try:
        from .device import unavailable

        unavailable.enter(state)
    except Exception as error:  # not even that: the reason stays readable in `tpu_lab._autoload.state`
        state.reason += f" (and the name tpu could not be kept either: {error})"


def _autoload() -> None:
    other = other_backend()
    if other:
        state.outcome, state.reason = "stepped_aside", other
        return
    from .device import registration, tpu_module

    registration.enter(tpu_module)
    state.outcome, state.reason = "ready", version_note()


def other_backend() -> str:
    """Why this process's PrivateUse1 key is not ours to take; empty if it is."""
    import torch

    name = torch._C._get_privateuse1_backend_name()
    if name not in ("privateuseone", "tpu") or (name == "tpu" and hasattr(torch, "tpu")):
        return (
            f"the PrivateUse1 device of this process is {name!r} already, and PyTorch has room for one. tpu_lab stays out as a device and only "
            f"records; start Python without that backend to use tpu_lab's device"
        )
    if importlib.util.find_spec("torch_tpu") is not None and has_tpu_chip():
        return "torch_tpu is installed and this machine has a TPU, so torch_tpu owns the device tpu; tpu_lab only records"
    return ""


def has_tpu_chip() -> bool:
    """True if a Google TPU is on the PCI bus (vendor 0x1ae0) and its device nodes exist."""
    root = "/sys/bus/pci/devices"
    try:
        entries = os.listdir(root)
    except OSError:
        return False
    for entry in entries:
        try:
            with open(f"{root}/{entry}/vendor") as f:
                vendor = f.read().strip()
        except OSError:
            continue
        if vendor == "0x1ae0" and (os.path.isdir("/dev/vfio") or os.path.exists("/dev/accel0")):
            return True
    return False


def remedy() -> str:
    """What to do where registering failed: the torch to install if this one is outside the tested range."""
    note = version_note()
    return note or "Reinstall tpu-lab, or set TPU_LAB_AUTOLOAD=0 to keep it out."


def version_note() -> str:
    """One line if torch is outside the tested range, else empty (also where there is no torch)."""
    try:
        import torch
    except ImportError:
        return ""
    digits = torch.__version__.split("+")[0].split(".")
    version = tuple(int(d) for d in digits[:2] if d.isdigit())
    if TORCH_RANGE[0] <= version < TORCH_RANGE[1]:
        return ""
    low, high = (".".join(map(str, v)) for v in TORCH_RANGE)
    return f"tpu_lab is tested with torch >= {low}, < {high}; this is {torch.__version__}. If the device fails, install torch=={low}.0"
