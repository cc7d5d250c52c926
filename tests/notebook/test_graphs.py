"""`tpu_lab.fusion_graph`: programs side by side, made on XLA:CPU, which needs no other compiler."""

from __future__ import annotations

import json

import pytest
import torch

import tpu_lab
from tpu_lab.errors import OptionError
from tpu_lab.record.program_codec import from_data


def test_a_module_becomes_a_graph() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))
    weight = model[0].weight.detach().clone()
    graph = tpu_lab.fusion_graph(model, torch.zeros(3, 8), target="cpu")
    (program,) = graph.programs
    ops = {op.op.removesuffix(".default") for op in program.ops}
    assert {"aten.addmm", "aten.gelu"} <= ops
    assert program.kernels and program.target.name == "cpu"
    assert from_data(json.loads(json.dumps(graph.to_data()))["programs"][0]).kernels
    assert torch.equal(model[0].weight, weight), "nothing ran and nothing moved"
    assert model[0].weight.device.type == "cpu"


def test_what_is_not_accepted() -> None:
    with pytest.raises(OptionError, match="one target or several"):
        tpu_lab.fusion_graph(torch.sin, torch.zeros(2), target=())
    with pytest.raises(OptionError, match="compile or eager"):
        tpu_lab.fusion_graph(torch.sin, torch.zeros(2), target="cpu", modes=("fast",))
