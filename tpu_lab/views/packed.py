"""JSON data for our renderers as one short text: a notebook file writes every number of a list on a line of its own."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

FORMAT = "tpu-lab-packed"


def packed(data: Any) -> dict[str, str]:
    """The data deflated (zlib) and in base64; `extension/src/packed.ts` reads it back."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return {"format": FORMAT, "schema": "1.0", "deflate": base64.b64encode(zlib.compress(text.encode(errors="replace"), 9)).decode("ascii")}
