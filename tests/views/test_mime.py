from __future__ import annotations

import base64
import json
import zlib
from dataclasses import replace
from typing import Any

import jsonschema

from tests.record import samples
from tpu_lab.record import Run, codec, schema
from tpu_lab.record.ops import COLUMNS, Ops
from tpu_lab.views import html, text
from tpu_lab.views.mime import MIME_TYPE, mime_bundle, shrink


def unpacked(data: Any) -> Any:
    """What `extension/src/packed.ts` does."""
    assert data["format"] == "tpu-lab-packed" and data["schema"] == "1.0"
    return json.loads(zlib.decompress(base64.b64decode(data["deflate"])))


def long_run(count: int) -> Run:
    base = samples.run()
    columns = {name: tuple(getattr(base.ops, name)[i % 5] for i in range(count)) for name in COLUMNS}
    columns["id"] = tuple(range(count))
    columns["duration_ns"] = tuple((i * 7919) % 100_003 for i in range(count))
    return replace(base, ops=Ops(**columns))


def test_a_bundle_carries_the_record_html_and_text() -> None:
    run = samples.run()
    bundle = mime_bundle(run)
    assert bundle["text/plain"] == text.summary(run) and bundle["text/html"] == html.run_html(run)
    data = unpacked(json.loads(json.dumps(bundle[MIME_TYPE])))
    jsonschema.Draft202012Validator(schema.build()).validate(data)
    assert codec.from_json(data) == run
    assert run._repr_mimebundle_() == bundle


def test_a_run_that_fits_is_left_as_it_is() -> None:
    run = samples.run()
    assert shrink(run) is run


def test_a_long_run_is_cut_to_its_most_expensive_ops() -> None:
    run = long_run(50_000)
    small = shrink(run, 300_000)
    size = len(codec.dumps(small))
    assert 200_000 < size <= 300_000
    kept = len(small.ops)
    assert small.ops_dropped == 50_000 - kept > 0
    assert min(small.ops.duration_ns) >= sorted(run.ops.duration_ns, reverse=True)[kept - 1]
    assert list(small.ops.id) == sorted(small.ops.id)
    assert (small.totals, small.lines, small.findings, small.memory.peak_bytes) == (run.totals, run.lines, run.findings, run.memory.peak_bytes)
    for op in small.ops[:200]:
        before = run.ops[op.id]
        assert small.programs[op.program] == run.programs[before.program]
        assert (small.modules[op.module] if op.module >= 0 else None) == (run.modules[before.module] if before.module >= 0 else None)
    assert codec.parse(codec.dumps(small).encode()) == small


def test_where_nothing_fits_the_totals_still_do() -> None:
    small = shrink(long_run(5_000), 10)
    assert len(small.ops) == 0 and small.ops_dropped == 5_000 and small.totals.ops == 5
    assert codec.parse(codec.dumps(small).encode()) == small


def test_html_and_text_of_a_long_run_tell_of_all_ops() -> None:
    run = long_run(5_000)
    bundle = mime_bundle(run, 50_000)
    assert "1,000" in bundle["text/plain"] or "2,000" in bundle["text/plain"]
    assert len(json.dumps(unpacked(bundle[MIME_TYPE]))) < 60_000


def test_in_a_notebook_file_a_run_takes_a_fraction_of_its_json() -> None:
    run = long_run(2_000)
    bundle = mime_bundle(run)
    assert len(json.dumps(bundle[MIME_TYPE], indent=1)) < len(codec.dumps(shrink(run))) / 2
