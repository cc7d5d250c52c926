"""A sample of `make validate-fusion`, where the TPU compiler is installed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks.fusion import report
from tpu_lab.record.fusion_reasons import FusionReason
from tpu_lab.xla import target_compile


@pytest.mark.skipif(not target_compile.installed(), reason="libtpu is not installed (Linux x86-64 only)")
def test_a_sample_holds_on_v6e() -> None:
    command = [sys.executable, "-m", "benchmarks.fusion", "--sample", "--targets", "v6e"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["share_exact"] >= 0.95 and figures["kernels"] > 15
    assert figures["counterfactuals"] == figures["counterfactuals_as_predicted"] == 5
    assert figures["unknown_codes"] == {}
    assert figures["pairs_by_source"]["log"] > 10


def test_a_page_without_an_example_says_why() -> None:
    text = report.page(FusionReason.COLLECTIVE, [])
    assert FusionReason.COLLECTIVE.sentence in text and "no program here runs on several chips" in text
