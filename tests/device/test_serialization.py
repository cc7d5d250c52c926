"""Tensors that are copied, pickled, saved and loaded: values, views of one storage, ties, devices."""

from __future__ import annotations

import copy
import io
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, load_model, save_file, save_model
from torch import nn

from .against_cpu import assert_agree, assert_error, geometry


def test_deepcopy_keeps_views_of_one_storage_together() -> None:
    def duplicate(device: str) -> Any:
        a = torch.arange(16.0, device=device).reshape(4, 4)
        twins = copy.deepcopy([a, a[1:], a.t()])
        twins[0].zero_()
        alias = copy.copy(a)
        alias.add_(1)
        offset = twins[1].data_ptr() - twins[0].data_ptr()
        return twins, a, alias.data_ptr() == a.data_ptr(), offset, [geometry(t) for t in twins]

    assert_agree(duplicate)


def test_deepcopy_of_parameters_and_lazy_conjugates() -> None:
    def duplicate(device: str) -> Any:
        p = nn.Parameter(torch.arange(3.0, device=device))
        p.grad = torch.ones(3, device=device)
        q = copy.deepcopy(p)
        q.data.add_(1)
        c = copy.deepcopy(torch.tensor([1 + 2j], device=device).conj())
        return q.detach(), p.detach(), type(q).__name__, q.requires_grad, c, c.is_conj()

    assert_agree(duplicate)
    assert_error(lambda device: copy.deepcopy(torch.ones(2, device=device, requires_grad=True) * 2), RuntimeError, "deepcopy protocol")


def things(device: str) -> dict[str, Any]:
    a = torch.arange(16.0, device=device).reshape(4, 4)
    return {
        "a": a,
        "view": a[1:],
        "transposed": a.t(),
        "parameter": nn.Parameter(torch.arange(3.0, device=device)),
        "bfloat16": torch.ones(3, dtype=torch.bfloat16, device=device),
        "conjugate": torch.tensor([1 + 2j], device=device).conj(),
        "empty": torch.zeros(0, 3, device=device),
        "0-dim": torch.tensor(3, device=device),
        "number": 5,
    }


def new_dtypes(device: str) -> dict[str, Any]:
    """Of dtypes that torch's old file format, and so a pickle, does not know on any device."""
    return {"float8": torch.ones(2, device=device).to(torch.float8_e4m3fn), "uint16": torch.tensor([1, 2], dtype=torch.uint16).to(device)}


def state(found: dict[str, Any]) -> Any:
    found["a"].fill_(2)  # the view shows it
    tensors = [v for v in found.values() if isinstance(v, torch.Tensor)]
    return found, [t.requires_grad for t in tensors], [geometry(t) for t in tensors], [t.is_conj() for t in tensors]


def test_pickle() -> None:
    assert_agree(lambda device: state(pickle.loads(pickle.dumps(things(device)))))


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("target", [None, "cpu", "same", "device"])
def test_save_and_load(zipped: bool, target: str | None) -> None:
    def through(device: str) -> Any:
        file = io.BytesIO()
        torch.save(things(device) | (new_dtypes(device) if zipped else {}), file, _use_new_zipfile_serialization=zipped)
        file.seek(0)
        where = {"same": device, "device": torch.device(device)}.get(target or "", target)
        loaded = torch.load(file, map_location=where, weights_only=True)
        assert {v.device.type for v in loaded.values() if isinstance(v, torch.Tensor)} == {torch.device(where or device).type}
        return state(loaded)

    assert_agree(through)


def test_a_cpu_file_loads_onto_the_device() -> None:
    file = io.BytesIO()
    torch.save(things("cpu"), file)
    file.seek(0)
    loaded = torch.load(file, map_location="tpu")
    assert loaded["a"].device.type == "tpu" and loaded["view"].data_ptr() - loaded["a"].data_ptr() == 16


def test_whole_modules_save_and_load() -> None:
    def through(device: str) -> Any:
        module = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
        for p in module.parameters():
            nn.init.constant_(p, 3)
        module.to(device)
        file = io.BytesIO()
        torch.save(module, file)
        file.seek(0)
        loaded = torch.load(file, weights_only=False)
        return dict(loaded.state_dict()), loaded[0].weight.device.type == device, type(loaded[0].weight).__name__

    assert_agree(through)


def test_files_load_where_the_device_does_not_exist(tmp_path: Path) -> None:
    torch.save({k: v for k, v in things("tpu").items() if k != "conjugate"}, tmp_path / "new")
    torch.save(torch.arange(3.0, device="tpu"), tmp_path / "old", _use_new_zipfile_serialization=False)
    code = (
        "import torch, sys; x = torch.load(sys.argv[1], map_location='cpu'); y = torch.load(sys.argv[2], map_location='cpu');"
        "print(x['a'].sum().item(), x['view'].storage_offset(), x['bfloat16'].dtype, y.tolist(), 'tpu_lab' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "new"), str(tmp_path / "old")],
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.strip() == "120.0 4 torch.bfloat16 [0.0, 1.0, 2.0] False", done.stderr


def test_safetensors(tmp_path: Path) -> None:
    a = torch.arange(12.0, device="tpu").reshape(3, 4)
    save_file(
        {"a": a, "half": a.half(), "brain": a.bfloat16(), "whole": a.long(), "none": torch.zeros(0, device="tpu"), "mask": a > 3}, tmp_path / "f"
    )
    loaded = load_file(tmp_path / "f")
    assert torch.equal(loaded["a"], a.cpu()) and torch.equal(loaded["brain"], a.cpu().bfloat16()) and torch.equal(loaded["mask"], a.cpu() > 3)
    assert loaded["none"].shape == (0,) and loaded["whole"].dtype == torch.int64 and torch.equal(loaded["half"], a.cpu().half())


def test_safetensors_sees_tied_weights(tmp_path: Path) -> None:
    a = torch.ones(4, device="tpu")
    for tied in ({"a": a, "b": a}, {"a": a[:3], "b": a[2:]}):
        with pytest.raises(RuntimeError, match="share memory"):
            save_file(tied, tmp_path / "f")
    module = nn.ModuleDict({"x": nn.Linear(3, 3), "y": nn.Linear(3, 3)})
    module["y"].weight = module["x"].weight
    module.to("tpu")
    save_model(module, str(tmp_path / "m"))
    other = copy.deepcopy(module)
    with torch.no_grad():
        other["x"].weight.zero_()
    load_model(other, tmp_path / "m")
    assert torch.equal(other["x"].weight.cpu(), module["x"].weight.cpu()) and other["x"].weight is other["y"].weight


def test_loading_warns_of_nothing(tmp_path: Path) -> None:
    torch.save(torch.ones(3, device="tpu"), tmp_path / "t.pt")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.load(tmp_path / "t.pt").tolist() == [1, 1, 1]
