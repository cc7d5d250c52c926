"""A run as JSON data and as a file: gzip over one JSON object, read with limits that hold while reading."""

from __future__ import annotations

import json
import math
import os
import secrets
import types
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from ..errors import RecordError, RecordTooLargeError, RecordTooNewError
from .integrity import BrokenReference, check
from .run import FORMAT, SCHEMA_VERSION, Run

_CHUNK = 1 << 18


@dataclass(frozen=True)
class Limits:
    """How large a saved run may be. All hold while reading: a small file that unpacks to a large one is never unpacked whole."""

    file_bytes: int = 64 << 20
    text_bytes: int = 160 << 20
    values: int = 20_000_000
    """JSON values, counted by their separators before parsing (an int takes 8 to 40 bytes of memory)."""
    containers: int = 4_000_000
    """JSON arrays and objects."""


DEFAULT_LIMITS = Limits()


def save(run: Run, path: str | os.PathLike[str]) -> None:
    """Writes a run to `path`; the same run gives the same bytes."""
    target = Path(path)
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        partial.write_bytes(pack(run))
        os.replace(partial, target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def load(path: str | os.PathLike[str], limits: Limits = DEFAULT_LIMITS) -> Run:
    """Reads a run from `path`. Raises as `Run.load` says."""
    name = Path(path).name
    with open(path, "rb") as file:
        text = inflate(file.read, name, limits)
    return parse(text, name)


def pack(run: Run) -> bytes:
    """A run as the bytes of a file."""
    compress = zlib.compressobj(6, zlib.DEFLATED, 31)
    return compress.compress(dumps(run).encode(errors="replace")) + compress.flush()


def dumps(run: Run) -> str:
    """A run as compact JSON text, in this version's schema."""
    return json.dumps(to_data(replace(run, schema=SCHEMA_VERSION)), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def parse(text: bytes, name: str = "the record") -> Run:
    """JSON text (UTF-8) as a run; checks version, types and indices."""
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise RecordError(
            f"{name} is not a saved run: its JSON cannot be read ({type(error).__name__})", remedy="save the run again with Run.save"
        ) from None
    return from_json(data, name)


def from_json(data: Any, name: str = "the record") -> Run:
    """Parsed JSON data as a run; checks version, types and indices."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise RecordError(f"{name} is not a saved run", accepted=f"a file written by Run.save (format {FORMAT})")
    check_version(data.get("schema"), SCHEMA_VERSION, name)
    try:
        run: Run = read_value(Run, data)
        check(run)
    except (Mismatch, BrokenReference) as mismatch:
        raise RecordError(f"{name} is damaged at {mismatch}", remedy="save the run again with Run.save") from None
    return run


def read_value(kind: Any, data: Any) -> Any:
    """JSON data as a value of a dataclass (or another annotated type). Raises `Mismatch` naming the place that does not fit."""
    return _reader(kind)(data)


_PLAIN = frozenset({str, int, float, bool, type(None)})


def to_data(value: Any) -> Any:
    """Dataclasses as plain JSON data. Tuples of numbers pass as they are: json writes them as arrays."""
    kind: Any = type(value)
    if kind is tuple:
        first = type(value[0]) if value else str
        return value if first in _PLAIN else [to_data(v) for v in value]
    return {name: v if type(v := getattr(value, name)) in _PLAIN else to_data(v) for name in names} if (names := _names(kind)) else value


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind)) if is_dataclass(kind) else ()


def check_version(version: Any, known: str, name: str) -> None:
    """Refuses a record of a newer major schema version than `known`. Raises RecordError, RecordTooNewError."""
    parts = str(version).split(".")
    if len(parts) != 2 or not all(p.isascii() and p.isdigit() and len(p) < 6 for p in parts):
        raise RecordError(f"{name} has no readable schema version", accepted=f"a version like {known}")
    if int(parts[0]) > int(known.split(".")[0]):
        raise RecordTooNewError(
            f"{name} was saved with schema {version}",
            accepted=f"schema {known.split('.')[0]}.x in this version of tpu_lab",
            remedy="pip install -U tpu-lab",
        )


def inflate(read: Callable[[int], bytes], name: str, limits: Limits) -> bytes:
    """Unpacks gzip piece by piece; stops as soon as a limit is passed."""
    unpack = zlib.decompressobj(31)
    pieces: list[bytes] = []
    taken = size = values = containers = 0
    while not unpack.eof:
        packed = read(_CHUNK)
        if not packed:
            raise RecordError(f"{name} ends too early" if taken else f"{name} is empty", remedy="copy or save the file again")
        taken += len(packed)
        _limit(taken, limits.file_bytes, name, "bytes on disk")
        while packed and not unpack.eof:
            try:
                piece = unpack.decompress(packed, _CHUNK)
            except zlib.error:
                raise RecordError(
                    f"{name} is not a saved run: it is not gzip data, or it is damaged", accepted="a file written by Run.save"
                ) from None
            packed = unpack.unconsumed_tail
            size += len(piece)
            opened = piece.count(b"[") + piece.count(b"{")
            containers += opened
            values += opened + piece.count(b",")
            _limit(size, limits.text_bytes, name, "bytes of JSON")
            _limit(containers, limits.containers, name, "arrays and objects")
            _limit(values, limits.values, name, "values")
            pieces.append(piece)
    return b"".join(pieces)


def _limit(value: int, limit: int, name: str, unit: str) -> None:
    if value > limit:
        raise RecordTooLargeError(
            f"{name} holds more than {limit:,} {unit}",
            accepted=f"up to {limit:,} {unit}",
            remedy="load it with larger tpu_lab.record.codec.Limits if you trust it",
        )


def _no_constant(name: str) -> Any:
    raise ValueError(name)


class Mismatch(Exception):
    """Data that does not fit the type at a path."""

    def __init__(self, wanted: str, path: str = "") -> None:
        super().__init__(f"{path or 'the top level'}: expected {wanted}")
        self.wanted, self.path = wanted, path

    def inside(self, place: str) -> Mismatch:
        """The same, seen from the value that holds this one at `place` (`ops` or `[3]`)."""
        return Mismatch(self.wanted, place + (f".{self.path}" if self.path and self.path[0] != "[" else self.path))


Reader = Callable[[Any], Any]


@cache
def _reader(kind: Any) -> Reader:
    """The function that turns JSON data into a value of a type, and refuses what does not fit."""
    if isinstance(kind, type) and is_dataclass(kind):
        return _dataclass_reader(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        return _tuple_reader(arguments[0])
    if origin in (Union, types.UnionType):
        inner = _reader(next(a for a in arguments if a is not type(None)))
        return lambda data: None if data is None else inner(data)
    return _SCALARS[kind]


def _scalar(kind: type, wanted: str) -> Reader:
    def read(data: Any) -> Any:
        if type(data) is not kind:
            raise Mismatch(wanted)
        return data

    return read


def _read_float(data: Any) -> float:
    if type(data) not in (int, float) or abs(data) > 1e300 or not math.isfinite(data):
        raise Mismatch("a finite number")
    return float(data)


def _read_text(data: Any) -> str:
    if type(data) is not str or (not data.isascii() and any("\ud800" <= c <= "\udfff" for c in data)):
        raise Mismatch("text")
    return data


_SCALARS: dict[Any, Reader] = {int: _scalar(int, "a whole number"), bool: _scalar(bool, "true or false"), float: _read_float, str: _read_text}


def _tuple_reader(item: Any) -> Reader:
    read_item = _reader(item)

    def read(data: Any) -> tuple[Any, ...]:
        if type(data) is not list:
            raise Mismatch("a list")
        if item is int:  # the long columns: checked without a call per value
            if not all(type(v) is int for v in data):
                raise Mismatch("whole numbers")
            return tuple(data)
        made: list[Any] = []
        try:
            made.extend(map(read_item, data))
        except Mismatch as mismatch:
            raise mismatch.inside(f"[{len(made)}]") from None
        return tuple(made)

    return read


def _dataclass_reader(kind: type[Any]) -> Reader:
    hints = get_type_hints(kind)
    readers = {f.name: _reader(hints[f.name]) for f in fields(kind)}

    def read(data: Any) -> Any:
        if type(data) is not dict:
            raise Mismatch("an object")
        try:
            given = {name: read_field(data[name]) for name, read_field in readers.items() if name in data}
        except Mismatch:
            raise _placed(readers, data) from None
        try:
            return kind(**given)
        except TypeError:
            missing = [name for name in readers if name not in given]
            raise Mismatch(f"the fields {', '.join(missing)}") from None

    return read


def _placed(readers: Mapping[str, Reader], data: Mapping[str, Any]) -> Mismatch:
    """What does not fit in an object, with the name of the field: found by reading again."""
    for name, read_field in readers.items():
        try:
            if name in data:
                read_field(data[name])
        except Mismatch as mismatch:
            return mismatch.inside(name)
    raise AssertionError("an object that does not fit is read without an error the second time")
