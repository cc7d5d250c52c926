"""Lists the ATen overloads without a path on the device, the most used first: `python -m tpu_lab.lowering.missing`.

An overload has a path if it runs as one XLA program (its lowering, or a decomposition), is a view, or is answered by the
device itself. Popularity is the number of model types that call it (`tpu_lab/coverage/data/ops_used.json`).
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from ..device import registration
from ..device.ways import cpu_overloads, way_of

USED = Path(__file__).parents[1] / "coverage" / "data" / "ops_used.json"


def main() -> None:
    """Prints a line for each overload without a path, then how many there are of each way."""
    registration.load()
    types: dict[str, int] = json.loads(USED.read_text())["types"]
    ways = {op.name().removeprefix("aten::"): way_of(op) for op in cpu_overloads()}
    without = sorted((name for name, way in ways.items() if way in ("host", "fallback")), key=lambda name: (-types.get(name, 0), name))
    for name in without:
        print(f"{types.get(name, 0):5d} model types  {ways[name]:9s} {name}")
    counts = Counter(ways.values())
    print(", ".join(f"{n} {way}" for way, n in counts.most_common()))
    print(f"{len(ways) - len(without)} of {len(ways)} overloads with a CPU kernel have a path: {100 * (1 - len(without) / len(ways)):.1f} %")


if __name__ == "__main__":
    main()
