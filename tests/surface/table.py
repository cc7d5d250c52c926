"""Prints docs/surface.md: every name of torch_tpu 0.2.0 that a user may meet, there and here.

    python -m tests.surface.table [FILE]

What torch_tpu has is a copied fact (`torch_tpu_0.2.0.json`); what stands here is looked up in the running process.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch

import tpu_lab  # noqa: F401  registers the device

FACTS = Path(__file__).with_name("torch_tpu_0.2.0.json")


def facts() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(FACTS.read_text())
    return loaded


def is_here(name: str) -> bool:
    """Whether a dotted name such as `torch.tpu.EagerMode.DEFER_NEVER` leads to something."""
    found: Any = torch
    for part in name.split(".")[1:]:
        try:
            found = getattr(found, part)
        except AttributeError:
            return False
    return True


def render() -> str:
    data = facts()
    rows = [(entry["name"], entry["torch_tpu"], "yes" if is_here(entry["name"]) else "no", entry.get("note", "")) for entry in data["names"]]
    here = sum(row[2] == "yes" for row in rows)
    there = sum(row[1] in ("yes", "private", "deprecated") for row in rows)
    lines = [
        "# Surface: torch_tpu 0.2.0 and tpu_lab",
        "",
        "Written by `make surface`; do not edit. `tests/surface/test_surface.py` fails while it is out of date.",
        "",
        f"Source for torch_tpu: {data['source']}; copied {data['copied']}.",
        "The column *here* says that the name exists, not more; how it behaves is tested in `tests/device/`.",
        "",
        f"{len(rows)} names: {there} usable in torch_tpu 0.2.0, {here} here.",
        "",
        "| torch_tpu | meaning |",
        "|---|---|",
        *(f"| {word} | {meaning} |" for word, meaning in data["legend"].items()),
        "",
        "| name | torch_tpu 0.2.0 | here | note |",
        "|---|---|---|---|",
        *(f"| `{name}` | {theirs} | {ours} | {note} |" for name, theirs, ours, note in rows),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(render())
    else:
        print(render(), end="")
