from __future__ import annotations

import json

import jsonschema
import pytest

from tpu_lab.record import Run, codec, schema

from . import samples


def checker() -> jsonschema.Draft202012Validator:
    written = json.loads(schema.PATH.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(written)
    return jsonschema.Draft202012Validator(written)


def test_the_written_schema_is_the_one_of_the_dataclasses() -> None:
    assert schema.PATH.read_text(encoding="utf-8") == schema.text(), "run: python -m tpu_lab.record.schema"


@pytest.mark.parametrize("run", [Run(), samples.run(), samples.run(with_comparison=False)], ids=["empty", "full", "without comparison"])
def test_runs_satisfy_the_schema(run: Run) -> None:
    checker().validate(json.loads(codec.dumps(run)))


@pytest.mark.parametrize(
    "change",
    [
        {"format": "x"},
        {"schema": "2.0"},
        {"name": 5},
        {"ops": []},
        {"ops": {"id": ["a"]}},
        {"ops": {"reads": [0]}},
        {"locations": [{"line": 3}]},
        {"comparison": {"baseline": "eager"}},
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(change: dict[str, object]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        checker().validate({**json.loads(codec.dumps(samples.run())), **change})


def test_unknown_fields_are_allowed() -> None:
    checker().validate({**json.loads(codec.dumps(samples.run())), "schema": "1.9", "new": 1})


def test_fields_carry_their_description() -> None:
    built = schema.build()
    assert built["$defs"]["Ops"]["properties"]["duration_ns"]["description"].startswith("Nanoseconds")
    assert "compiled again" in built["$defs"]["Recompile"]["description"]
    assert built["$defs"]["RunProgram"]["required"] == ["op", "kind"]


def test_every_reference_is_defined() -> None:
    text = schema.text()
    for name in set(json.loads(text)["$defs"]):
        assert f'"#/$defs/{name}"' in text
    jsonschema.Draft202012Validator(json.loads(text)).validate({"format": "tpu-lab-run", "schema": "1.0"})
