"""A process that checks nodes: keys come in by line, results go out by line as JSON (`python -m tests.conformance.worker FD SAMPLES`).

It ends after `PROGRAMS` compiled programs or beyond `MEMORY_MB`; the parent starts another one.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import time
import warnings
import zlib
from collections import Counter
from typing import Any

import numpy as np
import torch

import tpu_lab  # noqa: F401  registers the device
from tpu_lab.device import events, host_first

from .agreement import Agreement, Disagreement
from .module_checks import check_module, check_optimizer
from .nodes import Node
from .operator_checks import check
from .witness import Witness

PROGRAMS = 1000
MEMORY_MB = 2800


def examine(node: Node, limit: int | None, witness: Witness) -> dict[str, Any]:
    """Checks one node. Returns its entry of the journal: `status` is pass, fail or none (no sample of it can be compared)."""
    seed = zlib.crc32(node.key.encode())
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)
    witness.begin()
    checks = {"module": check_module, "optim": check_optimizer}
    function = checks.get(node.op.partition(":")[0], check)
    start = time.perf_counter()
    entry: dict[str, Any] = {"node": node.key}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            counts = Counter(function(node, limit))
        compared = counts.total() - counts[Agreement.UNCOMPARED]
        entry |= {"status": "pass" if compared else "none", "compared": compared}
        entry |= {kind.name.lower(): counts[kind] for kind in (Agreement.EXACT, Agreement.NEAR) if counts[kind]}
    except Disagreement as error:
        entry |= {"status": "fail", "reason": str(error)[:400]}
    except Exception as error:  # of OpInfo's own sampling, or the harness: counted as a fault until it is looked at
        entry |= {"status": "fail", "reason": f"harness: {type(error).__name__}: {str(error)[:300]}"}
    if witness.fallbacks:
        entry["fallbacks"] = sorted(witness.fallbacks)
    entry["seconds"] = round(time.perf_counter() - start, 2)
    return entry


def main(out: int, limit: int | None) -> None:
    host_first.COMPILED_AT_ONCE = 1 << 60  # no host kernels: they would compare the CPU with itself
    witness = Witness()
    told: set[tuple[str, str]] = set()
    with os.fdopen(out, "w") as results, events.observe(witness):
        for line in sys.stdin:
            entry = examine(Node.of(line.strip()), limit, witness)
            seen = {(op, kind) for op, kinds in witness.kinds.items() for kind in kinds}
            entry["overloads"] = sorted(seen - told)
            told |= seen
            used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            entry["last"] = witness.programs >= PROGRAMS or used >= MEMORY_MB
            results.write(json.dumps(entry) + "\n")
            results.flush()
            if entry["last"]:
                return


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) or None)
