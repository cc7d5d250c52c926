"""Shapes of decoded HLO: dtype, layout as text, memory space, and bytes with and without padding."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from .hlo_proto import Message

_DTYPES: dict[int, tuple[str, int]] = {
    1: ("pred", 8),
    2: ("s8", 8),
    3: ("s16", 16),
    4: ("s32", 32),
    5: ("s64", 64),
    6: ("u8", 8),
    7: ("u16", 16),
    8: ("u32", 32),
    9: ("u64", 64),
    10: ("f16", 16),
    11: ("f32", 32),
    12: ("f64", 64),
    15: ("c64", 64),
    16: ("bf16", 16),
    18: ("c128", 128),
    19: ("f8e5m2", 8),
    20: ("f8e4m3fn", 8),
    21: ("s4", 4),
    22: ("u4", 4),
    23: ("f8e4m3b11fnuz", 8),
    24: ("f8e5m2fnuz", 8),
    25: ("f8e4m3fnuz", 8),
    26: ("s2", 2),
    27: ("u2", 2),
    28: ("f8e4m3", 8),
    29: ("f8e3m4", 8),
    32: ("f4e2m1fn", 4),
    33: ("f8e8m0fnu", 8),
}
"""XLA's PrimitiveType to its short name and bits of an element."""
_TUPLE, _OPAQUE, _TOKEN = 13, 14, 17
_SPACES = {1: "VMEM", 2: "sync flag", 3: "CMEM", 4: "SMEM", 5: "host"}
"""Memory spaces of TPU layouts (`S(1)`); 0 is the device's main memory."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of an instruction's result. `bytes` counts padding, `useful_bytes` does not; a tuple's are its parts' sums."""

    dtype: str
    dims: tuple[int, ...]
    layout: str
    space: str
    bytes: int
    useful_bytes: int
    parts: tuple[Shape, ...] = ()

    @property
    def elements(self) -> int:
        """Number of elements; 0 for a tuple."""
        return 0 if self.dtype in ("tuple", "token", "opaque") else prod(self.dims)


def space_name(number: int, main: str) -> str:
    """The name of a memory space; `main` is that of space 0 (`HBM`, on XLA:CPU `RAM`)."""
    return main if number == 0 else _SPACES.get(number, f"space {number}")


def shape_of(message: Message | None, main: str) -> Shape:
    """A decoded Shape message. An unknown element type counts as one byte an element and is named `type <number>`."""
    if message is None:
        return Shape("token", (), "", main, 0, 0)
    kind = message["type"]
    if kind == _TUPLE:
        parts = tuple(shape_of(part, main) for part in message["parts"])
        return Shape("tuple", (), "", main, sum(p.bytes for p in parts), sum(p.useful_bytes for p in parts), parts)
    if kind in (_TOKEN, _OPAQUE):
        return Shape("token" if kind == _TOKEN else "opaque", (), "", main, 0, 0)
    name, bits = _DTYPES.get(kind, (f"type {kind}", 8))
    dims = tuple(message["dims"])
    layout = message["layout"]
    useful = -(-prod(dims) * bits // 8)
    if layout is None:
        return Shape(name, dims, "", main, useful, useful)
    return Shape(name, dims, _layout_text(layout), space_name(layout["space"], main), _padded_bytes(dims, layout, bits), useful)


def _padded_bytes(dims: tuple[int, ...], layout: Message, bits: int) -> int:
    """Bytes of an array whose minor dimensions are rounded up to the layout's first tile."""
    ordered = [dims[i] for i in reversed(layout["order"])]
    if layout["tiles"]:
        tile = layout["tiles"][0]["dims"]
        ordered = [1] * (len(tile) - len(ordered)) + ordered
        for place, size in enumerate(reversed(tile), 1):
            if size > 0:
                ordered[-place] = -(-ordered[-place] // size) * size
    width: int = layout["bits"] or bits
    elements: int = prod(ordered)
    return -(-elements * width // 8)


def _layout_text(layout: Message) -> str:
    """A layout as XLA prints it: `{1,0:T(8,128)(2,1)S(1)}`."""
    order = ",".join(map(str, layout["order"]))
    tiles = "".join(f"({','.join('*' if d < 0 else str(d) for d in tile['dims'])})" for tile in layout["tiles"])
    space = f"S({layout['space']})" if layout["space"] else ""
    rest = (f"T{tiles}" if tiles else "") + (f"E({layout['bits']})" if layout["bits"] else "") + space
    return f"{{{order}:{rest}}}" if rest else f"{{{order}}}"
