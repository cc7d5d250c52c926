"""What `TORCH_TRACE` gets of the deferred executor: torch_tpu's names and fields."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import pytest

from tests.device.processes import run
from tpu_lab.device.fuse import artifacts

CODE = """
import torch, tpu_lab
torch.tpu.eager_mode = torch.tpu.EagerMode.DEFER_AND_FUSE
x = torch.ones(4, 8).to("tpu")
for i in range(3):
    y = (x * 2 + i).relu()  # the line
    y.sum().item()
    del y
values, places = torch.topk(x, 2)
torch.tpu.synchronize()
z = x + 1
z.cpu()
"""
ENVELOPE = re.compile(r"^V\d{4} [^\]]*\] (\{.*\})$")


def told(folder: Path) -> list[tuple[dict[str, object], str]]:
    """Each record of a trace with its payload."""
    found: list[tuple[dict[str, object], str]] = []
    (log,) = folder.glob("dedicated_log_*.log")
    for line in log.read_text().splitlines():
        start = ENVELOPE.match(line)
        if start:
            found.append((json.loads(start[1]), ""))
        elif found:
            found[-1] = (found[-1][0], found[-1][1] + line.removeprefix("\t") + "\n")
    return found


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[dict[str, object], str]]:
    folder = tmp_path_factory.mktemp("trace")
    run(CODE, TORCH_TRACE=str(folder), TPU_LAB_FUSE="always")
    return told(folder)


def named(records: list[tuple[dict[str, object], str]], name: str) -> list[tuple[dict[str, object], str]]:
    return [(record["artifact"], payload) for record, payload in records if record.get("artifact", {}).get("name") == name]  # type: ignore[attr-defined,misc]


def test_each_flush_is_an_artifact_with_the_fields_of_torch_tpu(records: list[tuple[dict[str, object], str]]) -> None:
    flushes = [fields for fields, _ in named(records, "torchtpu_eager_aten_graph")]
    assert [f["reason"] for f in flushes] == ["item()"] * 3 + ["synchronize()", ".cpu()"]
    for fields in flushes:
        assert fields["encoding"] == "string" and fields["compile_failed"] is False
        assert str(fields["op_name"]).startswith("torchtpu_eager/aten.")
    assert [f["cache_hit"] for f in flushes] == [True] * 5 and flushes[0]["ops"] == 4


def test_each_program_is_an_artifact_as_stablehlo(records: list[tuple[dict[str, object], str]]) -> None:
    programs = named(records, "torchtpu_eager_stablehlo")
    assert len({fields["op_name"] for fields, _ in programs}) == 3  # the loop's and the two after it
    assert all(fields["cache_hit"] is False and "stablehlo." in payload for fields, payload in programs)


def test_each_flush_is_on_the_timeline(records: list[tuple[dict[str, object], str]]) -> None:
    events = [json.loads(payload) for record, payload in records if "chromium_event" in record and "torchtpu_eager" in payload]
    assert len(events) == 5
    for event in events:
        assert event["cat"] == "torchtpu_eager" and event["ph"] == "X" and event["name"].startswith("torchtpu_eager") and event["dur"] >= 0
    starts = [event["ts"] for event in events]
    assert starts == sorted(starts)


def test_graphs_are_written_where_there_was_no_program(tmp_path: Path) -> None:
    run(CODE, TORCH_TRACE=str(tmp_path), TPU_LAB_FUSE="replay")
    graphs = named(told(tmp_path), "torchtpu_eager_aten_graph")
    assert [fields["cache_hit"] for fields, _ in graphs] == [False] * 5
    first = graphs[0][1]
    assert first.startswith("# Graph: 4 calls\n%in0: float32[32] = input\n") and "return %" in first
    rows = [line for line in first.splitlines() if "aten." in line]
    assert re.fullmatch(r"%0: float32\[4, 8\] = aten.mul.Tensor\(%in0\)  # .*:6", rows[0]) and "(%0)" in rows[1] and rows[3].endswith(":7")
    assert any(re.search(r"^%0, %1: float32\[4, 2\], int64\[4, 2\] = aten.topk", payload, re.MULTILINE) for _, payload in graphs)


def test_lines_and_differences_of_calls_that_run_at_once(tmp_path: Path) -> None:
    run(CODE, TORCH_TRACE=str(tmp_path))
    graphs = named(told(tmp_path), "torchtpu_eager_aten_graph")
    assert graphs[0][0]["state"] == "unseen" and graphs[0][1].count(":6\n") == 3


def test_handlers_that_write_no_files_do_not_count() -> None:
    log, handler = logging.getLogger("torch.__trace"), logging.NullHandler()
    log.addHandler(handler)
    try:
        assert not artifacts.wanted()
    finally:
        log.removeHandler(handler)
