from __future__ import annotations

import gzip
import json
import random
import tracemalloc
import zlib
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpu_lab.errors import RecordError, RecordTooLargeError, RecordTooNewError
from tpu_lab.record import Run, codec
from tpu_lab.record.ops import COLUMNS, Ops
from tpu_lab.record.source import Location, Source

from . import samples


def write(path: Path, data: object) -> Path:
    path.write_bytes(gzip.compress(json.dumps(data).encode()))
    return path


def as_json(run: Run) -> dict[str, object]:
    return json.loads(codec.dumps(run))


def test_a_full_run_comes_back_equal(tmp_path: Path) -> None:
    run = samples.run()
    assert all(
        getattr(run, f.name) != getattr(Run(), f.name)
        for f in fields(Run)
        if f.name not in ("format", "schema", "blocking", "device", "target", "ops_dropped")
    )
    run.save(tmp_path / "a.json.gz")
    assert Run.load(tmp_path / "a.json.gz") == run


def test_an_empty_run_comes_back_equal(tmp_path: Path) -> None:
    Run().save(tmp_path / "a")
    assert Run.load(tmp_path / "a") == Run()


def test_saving_replaces_the_file_in_one_step_and_leaves_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_text("old")
    samples.run().save(target)
    first = target.read_bytes()
    samples.run().save(target)
    assert target.read_bytes() == first
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_failed_save_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_text("old")
    with pytest.raises(ValueError, match="JSON"):
        replace(samples.run(), findings=(replace(samples.run().findings[0], cost_ns=float("nan")),)).save(target)  # type: ignore[arg-type]
    assert target.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_hundred_thousand_ops_stay_small_and_fast(tmp_path: Path) -> None:
    rng, n = random.Random(0), 100_000
    starts, now = [], 0
    for _ in range(n):
        now += rng.randint(9_000, 400_000)
        starts.append(now)
    base = samples.run()
    ops = Ops(
        id=tuple(range(n)),
        program=tuple(i % 3 for i in range(n)),
        module=tuple(i % 2 for i in range(n)),
        location=tuple(i % 4 for i in range(n)),
        cell_location=tuple(i % 4 for i in range(n)),
        forward=(-2,) * n,
        start_ns=tuple(starts),
        duration_ns=tuple(rng.randint(5_000, 300_000) for _ in range(n)),
        thread=(0,) * n,
        reads=tuple((i % 5, (i + 1) % 5) for i in range(n)),
        writes=tuple((i % 5,) for i in range(n)),
    )
    run = replace(base, ops=ops)
    run.save(tmp_path / "a")
    assert (tmp_path / "a").stat().st_size < 2_000_000
    assert Run.load(tmp_path / "a") == run


def test_ops_read_as_a_sequence_of_rows() -> None:
    ops = samples.run().ops
    assert [op.id for op in ops] == [0, 1, 2, 3, 4]
    assert ops[3].forward == 0 and ops[-1] == list(ops)[4]
    assert [op.id for op in ops[1:3]] == [1, 2]
    assert [op.id for op in ops.keep([4, 0])] == [4, 0]


def test_a_newer_minor_is_read_and_unknown_fields_are_ignored(tmp_path: Path) -> None:
    data = as_json(samples.run())
    data["schema"] = "1.7"
    data["colour"] = {"of": ["the", "bike", "shed"]}
    data["ops"]["mood"] = [1, 2, 3]  # type: ignore[index]
    data["findings"][0]["stars"] = None  # type: ignore[index]
    run = Run.load(write(tmp_path / "a", data))
    assert run.schema == "1.7"
    assert replace(run, schema=Run().schema) == samples.run()
    run.save(tmp_path / "b")
    assert Run.load(tmp_path / "b").schema == Run().schema


def test_an_older_minor_without_a_field_takes_the_default(tmp_path: Path) -> None:
    data = as_json(samples.run())
    del data["recompiles"], data["memory"]["curve"]  # type: ignore[attr-defined]
    run = Run.load(write(tmp_path / "a", data))
    assert run.recompiles == () and run.memory.curve == ()


def test_a_newer_major_gives_one_message_even_if_nothing_else_fits(tmp_path: Path) -> None:
    with pytest.raises(RecordTooNewError) as caught:
        Run.load(write(tmp_path / "a.run", {"format": "tpu-lab-run", "schema": "2.0", "ops": "elsewhere"}))
    assert "schema 2.0" in str(caught.value) and "pip install -U tpu-lab" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "data", [[], 3, "text", None, {}, {"format": "another"}, {"format": "tpu-lab-run", "schema": "one"}, {"format": "tpu-lab-run", "schema": [1, 0]}]
)
def test_other_json_is_no_run(tmp_path: Path, data: object) -> None:
    with pytest.raises(RecordError):
        Run.load(write(tmp_path / "a", data))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"plain text",
        b"{}",
        b"\x1f\x8b",
        gzip.compress(b"{not json"),
        gzip.compress(b"[" * 100_000),
        gzip.compress(b"{}")[:-6],
        gzip.compress(b'{"a": ' + b"9" * 10_000 + b"}"),
    ],
    ids=["empty", "text", "json", "cut at once", "no json", "deep", "cut at the end", "a long number"],
)
def test_other_files_are_no_run(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(RecordError) as caught:
        Run.load(tmp_path / "a")
    assert str(tmp_path) not in str(caught.value)


def damage(path: str, value: object) -> dict[str, object]:
    data = as_json(samples.run())
    *parents, last = path.split(".")
    at = data
    for name in parents:
        at = at[int(name)] if isinstance(at, list) else at[name]  # type: ignore[assignment, index]
    at[int(last) if isinstance(at, list) else last] = value  # type: ignore[index, call-overload]
    return data


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("name", 5),
        ("name", "\ud800"),
        ("blocking", 1),
        ("totals.ops", "5"),
        ("totals.ops", 5.0),
        ("totals.ops", True),
        ("comparison.modes.0.difference.max_rel", "x"),
        ("comparison.modes.0.difference.max_rel", float("inf")),
        ("comparison.modes.0.difference.max_rel", float("nan")),
        ("programs.0.flops", 10**400),
        ("locations.0", 7),
        ("locations.0.source", 9),
        ("locations", {}),
        ("ops.id", [0, 1]),
        ("ops.program", [0, 1, 2, 0, 3]),
        ("ops.location", [0, 1, 2, 0, -2]),
        ("ops.reads", [[0], [0], [0], [0], [9]]),
        ("ops.start_ns", [0, 1, 2, 0, None]),
        ("storages.born", [1]),
        ("memory.largest.0.storage", 99),
        ("syncs.0.location", 99),
        ("lines.0.source", 5),
        ("findings.0", {"id": "TL201"}),
    ],
)
def test_damaged_fields_are_named_and_refused(tmp_path: Path, path: str, value: object) -> None:
    data = damage(path, value)
    text = json.dumps(data).replace("Infinity", "1e999")  # the one way to smuggle infinity past a strict parser
    (tmp_path / "a").write_bytes(gzip.compress(text.encode()))
    with pytest.raises(RecordError):
        Run.load(tmp_path / "a")


def test_a_message_names_the_damaged_field(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"damaged at locations\[2\]\.line: expected a whole number"):
        Run.load(write(tmp_path / "a", damage("locations.2.line", "x")))


def bomb(path: Path, piece: bytes, times: int) -> Path:
    pack = zlib.compressobj(9, zlib.DEFLATED, 31)
    with path.open("wb") as file:
        for _ in range(times):
            file.write(pack.compress(piece))
        file.write(pack.flush())
    return path


@pytest.mark.parametrize(
    ("piece", "unit"), [(b" " * 1_000_000, "bytes of JSON"), (b"[]," * 300_000, "arrays and objects"), (b"1," * 500_000, "values")]
)
def test_a_bomb_is_not_unpacked(tmp_path: Path, piece: bytes, unit: str) -> None:
    path = bomb(tmp_path / "a", piece, 250)
    limits = codec.Limits(file_bytes=50_000_000, text_bytes=20_000_000, values=4_000_000, containers=400_000)
    tracemalloc.start()
    with pytest.raises(RecordTooLargeError, match=unit):
        codec.load(path, limits)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 45_000_000  # the file unpacks to 225 to 250 MB


def test_a_large_file_is_refused_before_it_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    pack = zlib.compressobj(0, zlib.DEFLATED, 31)
    path.write_bytes(pack.compress(random.Random(1).randbytes(4_000_000)) + pack.flush())
    with pytest.raises(RecordTooLargeError, match="bytes on disk"):
        codec.load(path, codec.Limits(file_bytes=1_000_000))


def test_a_run_within_its_limits_passes_exactly(tmp_path: Path) -> None:
    samples.run().save(tmp_path / "a")
    size, text = (tmp_path / "a").stat().st_size, codec.dumps(samples.run()).encode()
    containers = text.count(b"[") + text.count(b"{")
    exact = codec.Limits(size, len(text), containers + text.count(b","), containers)
    assert codec.load(tmp_path / "a", exact) == samples.run()
    for field in fields(codec.Limits):
        with pytest.raises(RecordTooLargeError):
            codec.load(tmp_path / "a", replace(exact, **{field.name: getattr(exact, field.name) - 1}))


@given(st.binary(max_size=300))
@settings(max_examples=60, deadline=None)
def test_any_bytes_give_a_run_or_a_record_error(content: bytes) -> None:
    for text in (content, b'{"format":"tpu-lab-run","schema":"1.0","name":' + content + b"}"):
        try:
            codec.parse(text)
        except RecordError:
            continue


texts = st.text(st.characters(codec="utf-8"), max_size=20)
numbers = st.integers(-(2**62), 2**62)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    n = draw(st.integers(0, 6))
    base = samples.run()
    ints = {name: tuple(draw(st.lists(numbers, min_size=n, max_size=n))) for name in ("id", "forward", "start_ns", "duration_ns", "thread")}
    rows = {name: tuple(draw(st.lists(st.integers(0, 3), max_size=3).map(tuple)) for _ in range(n)) for name in ("reads", "writes")}
    index = {
        name: tuple(draw(st.lists(st.integers(low, 1), min_size=n, max_size=n)))
        for name, low in (("program", 0), ("module", -1), ("location", -1), ("cell_location", -1))
    }
    ops = Ops(**{name: {**ints, **rows, **index}[name] for name in COLUMNS})
    places = tuple(Location(0, draw(numbers), draw(numbers), function=draw(texts)) for _ in range(4))
    return replace(base, name=draw(texts), sources=(Source(draw(texts), "cell"), base.sources[1]), locations=places, ops=ops)


@given(runs())
@settings(max_examples=40, deadline=None)
def test_any_run_comes_back_equal(run: Run) -> None:
    assert codec.parse(codec.dumps(run).encode()) == run


def test_a_run_of_the_first_minor_version_reads(tmp_path: Path) -> None:
    data = as_json(samples.run())
    breaks = [{key: row[key] for key in ("reason", "message", "location", "cell_location", "count")} for row in data["graph_breaks"]]  # type: ignore[attr-defined]
    old = {key: value for key, value in data.items() if key not in ("graphs", "regions")} | {"schema": "1.0", "graph_breaks": breaks}
    run = Run.load(write(tmp_path / "old.json.gz", old))
    assert run.graphs == () and run.graph_breaks[0].hints == () and run.recompiles[0].version == 2


@pytest.mark.parametrize("field", ["stack", "graphs", "regions"])
def test_what_points_nowhere_in_the_new_tables_is_refused(tmp_path: Path, field: str) -> None:
    run = samples.run()
    broken = {
        "stack": replace(run, graph_breaks=(replace(run.graph_breaks[0], stack=(99,)),)),
        "graphs": replace(run, graphs=(replace(run.graphs[0], ended_by=5),)),
        "regions": replace(run, regions=(replace(run.regions[0], source=7),)),
    }[field]
    broken.save(tmp_path / "a.json.gz")
    with pytest.raises(RecordError, match="damaged"):
        Run.load(tmp_path / "a.json.gz")
