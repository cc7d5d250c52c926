from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from . import samples

BLOCKED = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "jax", "jaxlib", "numpy", "pandas", "IPython", "functorch"):
            raise ImportError(f"{name} is blocked in this test")

sys.meta_path.insert(0, Refuse())
"""


def in_new_process(code: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", BLOCKED + code, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_saved_run_reads_and_shows_without_torch_and_jax(tmp_path: Path) -> None:
    samples.run().save(tmp_path / "run")
    code = """
from tpu_lab.record import Run
run = Run.load(sys.argv[1])
text = run.summary()
bundle = run._repr_mimebundle_()
run.save(sys.argv[1] + ".again")
assert Run.load(sys.argv[1] + ".again") == run
assert not {"torch", "jax", "numpy"} & set(sys.modules)
print(len(run.ops), "aten.mm" in text, sorted(bundle))
"""
    out = in_new_process(code, str(tmp_path / "run"))
    assert out.split("\n")[0] == "5 True ['application/vnd.tpu-lab.run+json', 'text/html', 'text/plain']"


def test_a_frame_without_pandas_says_what_to_install(tmp_path: Path) -> None:
    samples.run().save(tmp_path / "run")
    code = """
from tpu_lab.record import Run
try:
    Run.load(sys.argv[1]).to_pandas()
except ImportError as error:
    print(error)
"""
    out = in_new_process(code, str(tmp_path / "run"))
    assert "pandas" in out and "pip install pandas" in out


def test_the_record_imports_only_the_standard_library() -> None:
    code = """
import importlib, pkgutil
import tpu_lab.record
before = set(sys.modules)
for module in pkgutil.iter_modules(tpu_lab.record.__path__):
    importlib.import_module(f"tpu_lab.record.{module.name}")
others = {name.split(".")[0] for name in set(sys.modules)} - set(sys.stdlib_module_names) - {"tpu_lab", "__main__", "__mp_main__"}
print(sorted(name for name in others if not name.startswith(("_", "sitecustomize"))))
allowed = ("record", "errors", "_autoload", "_version", "device")
print(sorted(name for name in sys.modules if name.startswith("tpu_lab.") and name.split(".")[1] not in allowed))
"""
    assert in_new_process(code).split("\n")[:2] == ["[]", "[]"]


def test_ops_as_a_frame() -> None:
    pandas = pytest.importorskip("pandas")
    frame = samples.run().to_pandas()
    assert list(frame["op"])[:3] == ["aten.mm.default", "aten.t.default", "aten.kthvalue.default"]
    assert list(frame["line"].fillna(-1)) == [2, 2, 4, 2, -1]
    assert list(frame["module"].fillna("")) == ["Net.proj", "Net", "", "Net.proj", ""]
    assert list(frame["forward_op"].fillna(-1)) == [-1, -1, -1, 0, -1]
    assert list(frame["backward"]) == [False, False, False, True, True]
    assert frame["inputs"][0] == "f32[8,16] f32[8,16]" and frame["duration_ns"].sum() == 50_940_500
    assert pandas.api.types.is_integer_dtype(frame["line"].dtype)
