"""The TPU generations a program can be compiled for, with the figures a roofline needs.

Figures are those of one jax device of a target: a TensorCore on v4 and tpu7x (two of which are a chip), a whole chip on the others.
Peaks, bandwidths and VMEM: the public chip table of jax 0.10.2 (`jax/_src/pallas/mosaic/tpu_info.py`, Apache-2.0, read 2026-12-01).
HBM: what the compiler of libtpu 0.0.42.1 says is available to a program when it refuses one that needs more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..errors import OptionError, one_of


@dataclass(frozen=True)
class Target:
    """What a program was compiled for."""

    name: str
    """`v4`, `v5e`, `v5p`, `v6e`, `tpu7x`; `cpu` for XLA:CPU."""
    title: str = ""
    """How people call it: `TPU v6e (Trillium)`."""
    topology: str = ""
    """Chips along each axis: `1x1`."""
    devices: int = 1
    """jax devices of the topology."""
    cores_per_chip: int = 1
    """jax devices of one chip: the figures below are a chip's divided by this."""
    flops: float = 0.0
    """Peak bfloat16 floating-point operations per second of a device; 0: not known."""
    hbm_bandwidth: float = 0.0
    """Bytes per second of a device; 0: not known."""
    hbm_bytes: int = 0
    """HBM a program may use on a device, in bytes; 0: not known."""
    vmem_bytes: int = 0
    """VMEM of a device, in bytes; 0: there is none."""
    clock_hz: float = 0.0
    """Clock in Hz by which the compiler's cycles turn into seconds (derived from the published peaks); 0: not known."""

    @property
    def label(self) -> str:
        """Name and topology as they are written after `--target`: `v6e` or `v6e:2x2`."""
        return self.name if self.topology in ("", _ONE_CHIP.get(self.name)) else f"{self.name}:{self.topology}"

    @property
    def is_tpu(self) -> bool:
        """False for XLA:CPU."""
        return self.name != CPU.name


_GIB = 1 << 30
CPU = Target("cpu", "XLA:CPU, not a TPU")
_ONE_CHIP = {"v4": "1x1x1", "v5e": "1x1", "v5p": "1x1x1", "v6e": "1x1", "tpu7x": "1x1x1"}
TARGETS = {
    "v4": Target("v4", "TPU v4", "1x1x1", 2, 2, 2.75e14 / 2, 1.23e12 / 2, int(15.25 * _GIB), 16 << 20, 1.05e9),
    "v5e": Target("v5e", "TPU v5e", "1x1", 1, 1, 1.97e14, 8.20e11, int(15.75 * _GIB), 128 << 20, 1.50e9),
    "v5p": Target("v5p", "TPU v5p", "1x1x1", 1, 1, 4.59e14, 2.46e12, int(95.74 * _GIB), 128 << 20, 1.75e9),
    "v6e": Target("v6e", "TPU v6e (Trillium)", "1x1", 1, 1, 9.20e14, 1.64e12, int(31.25 * _GIB), 128 << 20, 1.75e9),
    "tpu7x": Target("tpu7x", "TPU7x (Ironwood)", "1x1x1", 2, 2, 2.31e15 / 2, 7.40e12 / 2, int(94.75 * _GIB), 64 << 20, 2.2e9),
}
ALIASES = {"v7x": "tpu7x", "tpu7": "tpu7x", "ironwood": "tpu7x", "trillium": "v6e", "v5litepod": "v5e", "v5lite": "v5e"}


def target_named(text: str) -> Target:
    """The target of `v6e`, `v6e:2x2`, `ironwood` or `cpu`. Raises OptionError for an unknown name or a topology that is no AxB or AxBxC."""
    name, _, topology = text.strip().lower().partition(":")
    name = ALIASES.get(name, name)
    if name == CPU.name and not topology:
        return CPU
    if name not in TARGETS:
        raise OptionError(f"there is no target {text!r}", accepted=f"{one_of(TARGETS)}, with a topology as in v6e:2x2; aliases: {', '.join(ALIASES)}")
    target = TARGETS[name]
    if not topology:
        return target
    parts = topology.split("x")
    if len(parts) not in (2, 3) or not all(p.isascii() and p.isdigit() and 0 < int(p) <= 64 for p in parts):
        raise OptionError(f"target {text!r} has no readable topology", accepted=f"chips along each axis, as in {name}:{target.topology}")
    chips = 1
    for part in parts:
        chips *= int(part)
    return replace(target, topology=topology, devices=chips * target.cores_per_chip)
