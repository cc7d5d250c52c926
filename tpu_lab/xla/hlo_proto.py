"""XLA's dumped protocol buffers, decoded without the schema's compiled classes, which no package ships.

Only the fields below are kept; others are skipped, so a newer XLA may add some. Field numbers are those of `xla/service/hlo.proto`
and `xla/xla_data.proto` (openxla/xla, public and stable; read 2026-12-01). Absent numbers mean 0 and absent lists the empty list, as
proto3 defines it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Message = dict[str, Any]
"""A decoded message: field name to int, str, Message, or a list of them."""

_INT, _TEXT, _INTS = "int", "text", "ints"

_SCHEMA: dict[str, dict[int, tuple[str, str]]] = {
    "HloProto": {1: ("module", "Module"), 3: ("buffer_assignment", "BufferAssignment")},
    "HloProtoMemory": {3: ("buffer_assignment", "BufferAssignment")},
    "Module": {1: ("name", _TEXT), 3: ("computations", "Computation*"), 6: ("entry", _INT), 7: ("schedule", "Schedule"), 8: ("alias", "Aliases")},
    "Schedule": {1: ("sequences", "Sequence*")},
    "Sequence": {1: ("computation", _INT), 2: ("value", "SequenceIds")},
    "SequenceIds": {1: ("ids", _INTS)},
    "Aliases": {1: ("entries", "Alias*")},
    "Alias": {1: ("output", _INTS), 2: ("parameter", _INT), 3: ("parameter_index", _INTS)},
    "Computation": {1: ("name", _TEXT), 2: ("instructions", "Instruction*"), 5: ("id", _INT), 6: ("root", _INT)},
    "Instruction": {
        1: ("name", _TEXT),
        2: ("opcode", _TEXT),
        3: ("shape", "Shape"),
        7: ("metadata", "Metadata"),
        9: ("parameter", _INT),
        11: ("fusion_kind", _TEXT),
        13: ("tuple_index", _INT),
        14: ("dimensions", _INTS),
        15: ("window", "Window"),
        16: ("convolution", "Convolution"),
        28: ("target", _TEXT),
        30: ("dot", "Dot"),
        35: ("id", _INT),
        36: ("operands", _INTS),
        38: ("called", _INTS),
        43: ("backend_config", _TEXT),
        50: ("feature_groups", _INT),
        61: ("batch_groups", _INT),
    },
    "Shape": {2: ("type", _INT), 3: ("dims", _INTS), 4: ("parts", "Shape*"), 5: ("layout", "Layout")},
    "Layout": {1: ("order", _INTS), 6: ("tiles", "Tile*"), 7: ("bits", _INT), 8: ("space", _INT)},
    "Tile": {1: ("dims", _INTS)},
    "Metadata": {2: ("op_name", _TEXT)},
    "Window": {1: ("dims", "WindowDim*")},
    "WindowDim": {
        1: ("size", _INT),
        2: ("stride", _INT),
        3: ("low", _INT),
        4: ("high", _INT),
        5: ("window_dilation", _INT),
        6: ("base_dilation", _INT),
    },
    "Convolution": {
        3: ("kernel_input", _INT),
        4: ("kernel_output", _INT),
        6: ("kernel_spatial", _INTS),
        7: ("input_batch", _INT),
        8: ("input_feature", _INT),
        9: ("output_batch", _INT),
        10: ("output_feature", _INT),
        11: ("input_spatial", _INTS),
        12: ("output_spatial", _INTS),
    },
    "Dot": {1: ("lhs_contracting", _INTS), 2: ("rhs_contracting", _INTS), 3: ("lhs_batch", _INTS), 4: ("rhs_batch", _INTS)},
    "BufferAssignment": {1: ("buffers", "LogicalBuffer*"), 3: ("allocations", "Allocation*"), 4: ("traces", "Trace*")},
    "LogicalBuffer": {1: ("id", _INT), 2: ("size", _INT), 3: ("defined", "Defined"), 4: ("color", _INT)},
    "Defined": {2: ("name", _TEXT), 3: ("path", _INTS), 4: ("instruction", _INT)},
    "Allocation": {
        1: ("index", _INT),
        2: ("size", _INT),
        3: ("thread_local", _INT),
        5: ("is_parameter", _INT),
        6: ("parameter", _INT),
        7: ("live_out", _INT),
        8: ("color", _INT),
        9: ("assigned", "Assigned*"),
        10: ("parameter_index", _INTS),
        11: ("is_tuple", _INT),
        12: ("is_constant", _INT),
    },
    "Assigned": {1: ("buffer", _INT), 2: ("offset", _INT), 3: ("size", _INT)},
    "Trace": {1: ("events", "Event*"), 2: ("whole_module", _INT), 3: ("allocation", _INT)},
    "Event": {1: ("kind", _INT), 2: ("buffer", _INT), 4: ("instruction", _TEXT), 5: ("shared_with", _INT)},
}
"""Message to field number to (name, kind); a kind is a scalar's, a message's name, or that with a star for a list."""

_DEFAULTS: dict[str, Message] = {
    message: {name: [] if kind == _INTS or kind.endswith("*") else {_INT: 0, _TEXT: ""}.get(kind) for name, kind in fields.values()}
    for message, fields in _SCHEMA.items()
}


class DecodeError(ValueError):
    """Bytes that are no protocol buffer of the expected message."""


def decode(data: bytes, message: str = "HloProto") -> Message:
    """Bytes as a message of the schema above; every field is present. Raises DecodeError.

    Shapes that are written alike are one object: a module holds few different ones. Nothing of a message is to be changed.
    """
    try:
        return _readers[message](data, 0, len(data))
    except (IndexError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(f"not a {message}: {error}") from None
    finally:
        _shapes.clear()


_shapes: dict[bytes, Message] = {}


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = data[at]
    at += 1
    if value < 0x80:
        return value, at
    value &= 0x7F
    shift = 7
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise DecodeError("a number of more than ten bytes")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _packed(data: bytes, at: int, end: int) -> list[int]:
    values = []
    while at < end:
        value, at = _varint(data, at)
        values.append(_signed(value))
    return values


Reader = Callable[[bytes, int, int], Message]


def _reader(message: str) -> Reader:
    """The function that reads one kind of message from `data[at:end]`."""
    defaults, fields = _DEFAULTS[message], _SCHEMA[message]
    lists = [name for name, value in defaults.items() if isinstance(value, list)]

    def read(data: bytes, at: int, end: int) -> Message:
        made = defaults.copy()
        for name in lists:
            made[name] = []
        while at < end:
            tag, at = _varint(data, at)
            wire = tag & 7
            name, kind = fields.get(tag >> 3, ("", ""))
            if wire == 0:
                value, at = _varint(data, at)
                if kind == _INT:
                    made[name] = _signed(value)
                elif kind == _INTS:
                    made[name].append(_signed(value))
            elif wire == 2:
                size, at = _varint(data, at)
                stop = at + size
                if stop > end:
                    raise DecodeError(f"a field of {message} ends behind its message")
                if kind:
                    _take(made, name, kind, data, at, stop)
                at = stop
            elif wire in (1, 5):
                at += 8 if wire == 1 else 4
            else:
                raise DecodeError(f"wire type {wire} in {message}")
        return made

    return read


def _take(made: Message, name: str, kind: str, data: bytes, at: int, stop: int) -> None:
    """Puts a length-delimited field into a message."""
    if kind == _TEXT:
        made[name] = data[at:stop].decode()
    elif kind == "Shape":
        text = data[at:stop]
        shape = _shapes.get(text)
        if shape is None:
            shape = _shapes[text] = _readers["Shape"](data, at, stop)
        made[name] = shape
    elif kind == _INTS:
        made[name] += _packed(data, at, stop)
    elif kind.endswith("*"):
        made[name].append(_readers[kind[:-1]](data, at, stop))
    elif kind != _INT:
        made[name] = _readers[kind](data, at, stop)


_readers: dict[str, Reader] = {message: _reader(message) for message in _SCHEMA}
