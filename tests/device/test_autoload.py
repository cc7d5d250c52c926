"""`import torch` never fails because of this package, and a device that cannot be had says why at its first use."""

from __future__ import annotations

from pathlib import Path

from .processes import run

ATTEMPTS = """
import torch
assert torch.ones(2).sum() == 2
from tpu_lab import _autoload
print(_autoload.state.outcome)

def attempt(use):
    try:
        print("fine", use())
    except Exception as error:
        print(type(error).__name__, error)
"""
MAKE_AND_MOVE = """
attempt(lambda: torch.ones(2, device="tpu"))
attempt(lambda: torch.ones(2).to("tpu"))
attempt(lambda: torch.nn.Linear(2, 2).to("tpu"))
"""


def package(place: Path, name: str, text: str) -> Path:
    (place / name).mkdir()
    (place / name / "__init__.py").write_text(text)
    return place


def test_a_jax_that_breaks(tmp_path: Path) -> None:
    place = package(tmp_path, "jax", "raise ValueError('jax is broken here')")
    code = ATTEMPTS + MAKE_AND_MOVE + "attempt(lambda: (torch.tpu.is_available(), torch.tpu.memory_allocated(), torch.manual_seed(1) is not None))"
    lines = run(code, path=place).splitlines()
    assert lines[0] == "ready" and lines[4] == "fine (True, 0, True)"
    for line in lines[1:4]:
        assert line.startswith("RuntimeError the device tpu needs jax and jaxlib >= 0.10.2") and "ValueError: jax is broken here" in line
        assert "pip install 'jax==0.10.2'" in line


def test_a_newer_torch() -> None:
    code = (
        "import torch\ntorch.__version__ = '2.99.0'\n"
        + ATTEMPTS
        + "print(_autoload.state.reason)\nattempt(lambda: torch.ones(2, device='tpu').sum().item())"
    )
    lines = run(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0").splitlines()
    assert lines == ["ready", "tpu_lab is tested with torch >= 2.13, < 2.14; this is 2.99.0. If the device fails, install torch==2.13.0", "fine 2.0"]


def test_a_newer_torch_without_what_the_device_needs() -> None:
    code = "import torch\ntorch.__version__ = '2.99.0'\ndel torch._C._acc.create_empty_tensor\n" + ATTEMPTS + MAKE_AND_MOVE
    code += "attempt(lambda: torch.tpu.memory_allocated())\nattempt(lambda: (torch.tpu.is_available(), torch.manual_seed(1) is not None))"
    lines = run(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0").splitlines()
    assert lines[0] == "failed" and lines[5] == "fine (False, True)"
    for line in lines[1:5]:
        assert line.startswith("RuntimeError tpu_lab could not register the device tpu: AttributeError") and line.endswith("install torch==2.13.0")


def test_switched_off() -> None:
    code = ATTEMPTS + "print(_autoload.state.reason)\nprint(hasattr(torch, 'tpu'))\nattempt(lambda: torch.device('tpu'))"
    lines = run(code, TPU_LAB_AUTOLOAD="0").splitlines()
    assert lines[:3] == ["off", "tpu_lab is switched off by TPU_LAB_AUTOLOAD=0; unset it and restart Python", "False"]
    assert lines[3].startswith("RuntimeError Expected one of cpu")


def test_another_backend_that_was_there_first() -> None:
    code = "import torch\ntorch.utils.rename_privateuse1_backend('npu')\n" + ATTEMPTS + "print(_autoload.state.reason)\nprint(torch.device('npu'))"
    lines = run(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0").splitlines()
    assert lines[0] == "stepped_aside" and "is 'npu' already" in lines[1] and lines[2] == "npu"


def test_torch_tpu_without_and_with_a_chip(tmp_path: Path) -> None:
    place = package(tmp_path, "torch_tpu", "")
    assert run(ATTEMPTS + "attempt(lambda: torch.ones(2, device='tpu').sum().item())", path=place).splitlines() == ["ready", "fine 2.0"]
    code = """
        import os
        from tpu_lab import _autoload
        del os.environ["TPU_LAB_AUTOLOAD"]
        _autoload.has_tpu_chip = lambda: True
        _autoload.autoload()
        import torch
        print(_autoload.state.outcome, hasattr(torch, "tpu"))
        print(_autoload.state.reason)
    """
    lines = run(code, path=place, TPU_LAB_AUTOLOAD="0", TORCH_DEVICE_BACKEND_AUTOLOAD="0").splitlines()
    assert lines[0] == "stepped_aside False" and lines[1].startswith("torch_tpu is installed and this machine has a TPU")
