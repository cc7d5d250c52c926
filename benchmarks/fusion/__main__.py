"""`python -m benchmarks.fusion`: compiles the programs and counterfactuals, checks them, and writes docs/fusion-validation.md and docs/fusion/.

`--sample` checks a few programs on one target and writes nothing. Exits with 1 if a figure is below what docs/fusion-validation.md promises.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.update(  # before libtpu loads: quiet, no metadata server, no lock
    JAX_PLATFORMS="cpu",
    TPU_SKIP_MDS_QUERY="1",
    TPU_ACCELERATOR_TYPE="v6e-1",
    TPU_WORKER_HOSTNAMES="localhost",
    TPU_LOG_DIR="disabled",
    ALLOW_MULTIPLE_LIBTPU_LOAD="1",
)
TARGETS = ("v5e", "v6e", "tpu7x")
SAMPLE = ("layer_norm", "softmax", "gelu_mlp", "two_consumers", "conv_batch_norm_eval", "slices", "adam_update", "pointwise_with_intermediate")
SAMPLE_REASONS = ("after_matmul", "after_reduction", "reduction_then_broadcast", "small_value", "not_fusible")
EXACT = 0.95
"""The share of kernels whose members the replay must reproduce."""


def main(arguments: Sequence[str]) -> int:
    """Runs the checks; prints one line for each compile and JSON at the end."""
    options = _parser().parse_args(arguments)
    if importlib.util.find_spec("libtpu") is None:
        print("the TPU compiler is not installed: pip install 'tpu-lab[targets]' (Linux x86-64)", file=sys.stderr)
        return 2
    from . import report
    from .check import replay_of, tried
    from .counterfactuals import COUNTERFACTUALS
    from .programs import PROGRAMS

    targets = options.targets.split(",")
    names = SAMPLE if options.sample else tuple(PROGRAMS)
    cases = [c for c in COUNTERFACTUALS if not options.sample or c.reason.id in SAMPLE_REASONS]
    replays = [_told(lambda n=name, t=target: replay_of(PROGRAMS[n], t, options.effort)) for target in targets for name in names]
    trials = [_told(lambda c=case, t=target: tried(c, t)) for target in targets for case in cases]
    result = report.Result(tuple(replays), tuple(trials), options.effort)
    if not options.sample:
        report.write(result, Path(options.docs))
    print(json.dumps(result.figures()))
    return 0 if result.share >= EXACT and all(t.holds for t in trials) else 1


def _told(run: Callable[[], Any]) -> Any:
    """What `run` finds, after a line about it."""
    from . import report

    found = run()
    print(report.line(found), flush=True)
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fusion")
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--effort", default="quick", choices=("quick", "full"))
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--docs", default="docs")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
