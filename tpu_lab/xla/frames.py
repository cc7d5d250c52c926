"""Messages between this process and the worker that compiles: a JSON object and bytes, each with its length before it."""

from __future__ import annotations

import json
import struct
from typing import Any, BinaryIO

_HEAD = struct.Struct(">II")


def write(stream: BinaryIO, header: dict[str, Any], payload: bytes = b"") -> None:
    """Writes one message. Raises BrokenPipeError if nobody reads any more."""
    text = json.dumps(header).encode()
    stream.write(_HEAD.pack(len(text), len(payload)) + text)
    stream.write(payload)
    stream.flush()


def read(stream: BinaryIO) -> tuple[dict[str, Any], bytes]:
    """Reads one message. Raises EOFError if the other side is gone."""
    text_size, payload_size = _HEAD.unpack(_exactly(stream, _HEAD.size))
    header = json.loads(_exactly(stream, text_size))
    return header, _exactly(stream, payload_size)


def _exactly(stream: BinaryIO, count: int) -> bytes:
    pieces = []
    while count:
        piece = stream.read(min(count, 1 << 20))
        if not piece:
            raise EOFError("the other side closed the pipe")
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)
