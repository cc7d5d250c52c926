"""The operator table: what it says is what the data files and the device say."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import tpu_lab
from tests.device.test_models import Fallbacks
from tpu_lab.coverage import sources, survey, table
from tpu_lab.coverage.explorer import heat, on_device
from tpu_lab.coverage.rows import HERE, THERE, Coverage
from tpu_lab.device import events
from tpu_lab.errors import OptionError


@pytest.fixture(scope="module")
def whole() -> Coverage:
    return tpu_lab.coverage()


def test_every_overload_of_the_dispatcher_has_a_row_and_the_data_is_not_out_of_date(whole: Coverage) -> None:
    stored = json.loads(survey.OUT.read_text())["overloads"]
    assert stored == survey.examine(), "run `python -m tpu_lab.coverage.survey --programs`"
    assert {row.name for row in whole} == set(stored) and len(whole) > 3000
    assert {row.here for row in whole} == set(HERE) and {row.torch_tpu for row in whole} == set(THERE)


@pytest.mark.parametrize("name", ["aten.kthvalue", "aten::kthvalue", "kthvalue", "torch.ops.aten.kthvalue.default"])
def test_a_row_is_found_by_any_of_its_names(whole: Coverage, name: str) -> None:
    assert whole[name].aten == "aten.kthvalue"


def test_an_unknown_name_names_its_neighbours(whole: Coverage) -> None:
    with pytest.raises(KeyError, match=r"aten\.kthvalue or aten\.kthvalue\.values"):
        whole["aten.kthvalue.nothing"]


CALLS = {
    "aten.smooth_l1_loss": lambda x: torch.nn.functional.smooth_l1_loss(x, x * 2),
    "aten.kthvalue": lambda x: torch.kthvalue(x, 1),
    "aten.dist": lambda x: torch.dist(x, x * 2),
    "aten._dirichlet_grad": lambda x: torch._dirichlet_grad(x.abs(), x.abs() + 1, x.abs() + 2),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_status_is_what_the_device_does(whole: Coverage, name: str) -> None:
    seen = Fallbacks()
    with events.observe(seen):
        CALLS[name](torch.tensor([1.0, 2.0, 3.0], device="tpu"))
    fell_back = any(line.startswith(name.removesuffix(".default")) for line in seen.names)
    assert fell_back == (whole[name].here == "fallback"), seen.names


def test_a_missing_overload_raises(whole: Coverage) -> None:
    assert whole["aten._masked_scale"].here == "missing"
    x = torch.ones(2, device="tpu")
    with pytest.raises(NotImplementedError):
        torch.ops.aten._masked_scale(x, x, 1.0)


def test_dtypes_are_those_of_the_suite(whole: Coverage) -> None:
    nodes = json.loads((table.DATA / "conformance.json").read_text())["nodes"]
    row = whole["aten.kthvalue"]
    for dtype, verdict in row.dtypes.items():
        assert nodes[f"kthvalue|functional|{dtype}"]["status"] == verdict
    assert "bool" not in row.dtypes and "complex64" not in row.dtypes  # PyTorch's CPU has no such kernel
    assert row.tests == ("kthvalue",) and row.executors["eager"] == "pass"


def test_a_failing_node_marks_only_what_bears_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    real = table._read

    def read(name: str) -> object:
        data = real(name)
        if name == "conformance":
            data["nodes"]["kthvalue|functional|float32"] = {"status": "fail"}
        return data

    monkeypatch.setattr(table, "_read", read)
    changed = table.load.__wrapped__()
    assert changed["kthvalue"].dtypes["float32"] == "fail" and changed["kthvalue"].executors["eager"] == "fail"
    assert changed["sort.stable"].dtypes["float32"] == "pass"
    assert not on_device(changed["kthvalue"], "float32") and on_device(changed["kthvalue"], "float64")


def test_filters(whole: Coverage) -> None:
    assert {row.name for row in whole.filter("smooth loss backward")} == {"smooth_l1_loss_backward", "smooth_l1_loss_backward.grad_input"}
    assert {row.here for row in whole.filter(here="fallback")} == {"fallback"}
    assert all(row.family == "FFT" and "complex64" in row.dtypes for row in whole.filter(family="FFT", dtype="complex64"))
    with pytest.raises(OptionError, match="native, decomposed, fallback or missing"):
        whole.filter(here="natve")


def test_csv_and_json_hold_every_row(whole: Coverage, tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(whole.to_csv())))
    assert len(rows) == len(whole)
    by_name = {row["overload"]: row for row in rows}
    assert by_name["aten.kthvalue"]["here"] == "native" and by_name["aten.kthvalue"]["torch_tpu"] == "missing"
    whole.filter("kthvalue").save(tmp_path / "few.json")
    saved = json.loads((tmp_path / "few.json").read_text())
    assert {row["name"] for row in saved["overloads"]} == {"kthvalue", "kthvalue.values"}
    with pytest.raises(OptionError, match=r"\.html, \.csv or \.json"):
        whole.save(tmp_path / "table.xlsx")


def test_the_heat_map_counts_what_runs(whole: Coverage) -> None:
    for family, size, cells in heat(whole):
        rows = [row for row in whole if row.family == family]
        assert size == len(rows)
        assert cells[0] == (sum("float32" in r.dtypes for r in rows), sum(on_device(r, "float32") for r in rows))


def test_every_lowering_is_found_in_its_file(whole: Coverage) -> None:
    lost = [row.name for row in whole if row.lowering and not sources.lowering_source(row.lowering)[1]]
    assert lost == []
    where, text = sources.lowering_source(whole["aten.kthvalue"].lowering)
    assert where.startswith("tpu_lab/lowering/order_statistic.py:") and text.startswith('@lowering("kthvalue")')


def test_programs_are_stablehlo_or_operators(whole: Coverage) -> None:
    programs = table.programs()
    assert "stablehlo.add" in programs["add.Tensor"] and "aten.sub.Tensor" in programs["dist"]
    assert set(programs) <= {row.name for row in whole}


def test_examples_run_on_the_device(whole: Coverage) -> None:
    rows = [row for row in whole if row.example and row.model_types > 300]
    assert len(rows) > 30
    for row in rows:
        with torch.device("tpu"):
            exec(row.example, {"torch": torch})


def test_the_table_reads_without_torch_and_jax() -> None:
    code = """
import sys, types
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "jax", "jaxlib", "numpy", "pandas"):
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
import tpu_lab
table = tpu_lab.coverage()
bundle = table._repr_mimebundle_()
print(len(table), sorted(bundle), table["aten.relu"].here)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(len(tpu_lab.coverage()))) and "application/vnd.tpu-lab.coverage+json" in done.stdout


def test_what_is_shown_says_how_old_it_is(whole: Coverage) -> None:
    made = whole.made["conformance"]
    assert f"verified {made['date']} with torch {made['torch']}" in whole.summary()
    assert "<script" not in whole._repr_mimebundle_()["text/html"]
