from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import jsonschema
import pytest

from tpu_lab.errors import OptionError, RecordError, RecordTooLargeError, RecordTooNewError
from tpu_lab.record import Program, program_codec, schema
from tpu_lab.record.codec import Limits
from tpu_lab.record.targets import CPU, TARGETS, target_named

from . import program_samples


def checker() -> jsonschema.Draft202012Validator:
    written = json.loads(schema.PROGRAM_PATH.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(written)
    return jsonschema.Draft202012Validator(written)


def test_the_written_schema_is_the_one_of_the_dataclasses() -> None:
    assert schema.PROGRAM_PATH.read_text(encoding="utf-8") == schema.text(schema.build_program()), "run: python -m tpu_lab.record.schema"


@pytest.mark.parametrize("program", [Program(), program_samples.program()], ids=["empty", "full"])
def test_a_program_survives_json_and_satisfies_the_schema(program: Program) -> None:
    checker().validate(json.loads(program.to_json()))
    assert Program.from_json(program.to_json()) == program
    assert program_codec.unpack(program_codec.pack(program)) == program


def test_a_program_reads_without_torch_and_jax() -> None:
    code = (
        "import sys\nfor name in ('torch', 'jax', 'numpy'): sys.modules[name] = None\n"
        "import importlib.machinery, types\n"
        "package = types.ModuleType('tpu_lab'); package.__path__ = [sys.argv[1]]; sys.modules['tpu_lab'] = package\n"
        "from tpu_lab.record import Program\n"
        "print(Program.from_json(sys.stdin.read()).kernels[0].name)"
    )
    folder = str(schema.PATH.parents[1])
    text = program_samples.program().to_json()
    done = subprocess.run([sys.executable, "-c", code, folder], input=text, capture_output=True, text=True, check=True)
    assert done.stdout == "fusion\n"


@pytest.mark.parametrize(
    "change",
    [
        {"format": "tpu-lab-run"},
        {"name": 3},
        {"kernels": [{"name": "x"}]},
        {"schedule": [99]},
        {"edges": [{"producer": 7, "consumer": 0, "instruction": 0, "bytes": 0, "space": "HBM"}]},
    ],
)
def test_damaged_data_is_refused(change: dict[str, object]) -> None:
    data = {**json.loads(program_samples.program().to_json()), **change}
    with pytest.raises(RecordError):
        Program.from_json(json.dumps(data))


def test_versions_and_sizes_are_checked() -> None:
    data = json.loads(program_samples.program().to_json())
    assert Program.from_json(json.dumps({**data, "schema": "1.7", "new": 1})).name == "forward"
    with pytest.raises(RecordTooNewError):
        Program.from_json(json.dumps({**data, "schema": "2.0"}))
    with pytest.raises(RecordTooLargeError):
        program_codec.unpack(program_codec.pack(program_samples.program()), limits=Limits(text_bytes=100))
    with pytest.raises(RecordError):
        Program.from_json("{")


def test_what_a_program_answers() -> None:
    program = program_samples.program()
    assert program.op("n3").place == "model.py:13"
    with pytest.raises(LookupError, match="n9"):
        program.op("n9")
    assert program.bound_by == "memory" and program.mapped == 1.0
    assert replace(program, kernels=(replace(program.kernels[0], ops=()), program.kernels[1])).mapped == 0.5
    space = program.memory.space("HBM")
    assert space is not None and space.over == 192 and program.memory.space("VMEM") is None
    assert program.memory.padding == 2 * 896


def test_targets_by_name() -> None:
    assert target_named("V6E") == TARGETS["v6e"]
    assert target_named("ironwood") == target_named("v7x") == TARGETS["tpu7x"]
    assert target_named("v6e:2x2").devices == 4 and target_named("v6e:2x2").label == "v6e:2x2"
    assert target_named("v4:2x2x1").devices == 8
    assert target_named("v5e").label == "v5e" and target_named("cpu") is CPU and not CPU.is_tpu


@pytest.mark.parametrize("text", ["v9", "", "v6e:2", "v6e:axb", "v6e:0x1", "cpu:1x1"])
def test_unknown_targets_are_refused_with_what_is_accepted(text: str) -> None:
    with pytest.raises(OptionError, match=r"v5e|chips"):
        target_named(text)
