from __future__ import annotations

import contextlib
import os

import IPython
import jax
import pytest
import torch

import tpu_lab.device.events as own
from tpu_lab.recording.frames import CELL, INTERNAL, USER, CellText, SourceTable, cell_of_file, classify

CELLS = {"/tmp/ipykernel_1/5.py": CellText("cell 5"), "/tmp/ipykernel_1/4.py": CellText("cell 4", current=False)}


@pytest.mark.parametrize(
    ("filename", "kind"),
    [
        ("/tmp/ipykernel_1/5.py", CELL),
        ("/tmp/ipykernel_1/4.py", USER),
        ("/tmp/ipykernel_1/3.py", USER),
        ("<ipython-input-3-abc>", USER),
        (__file__, USER),
        ("/opt/x/site-packages/transformers/modeling.py", USER),
        (torch.nn.functional.__file__, INTERNAL),
        (jax.numpy.__file__, INTERNAL),
        (IPython.__file__, INTERNAL),
        (own.__file__, INTERNAL),
        (contextlib.__file__, INTERNAL),
        ("<frozen importlib._bootstrap>", INTERNAL),
        ("<string>", INTERNAL),
        (os.path.dirname(torch.__file__) + "vision/ops.py", USER),
    ],
)
def test_whose_frame_it_is(filename: str, kind: int) -> None:
    assert classify(filename, CELLS) == kind


def test_only_a_cell_s_file_is_taken_as_the_cell() -> None:
    assert list(cell_of_file("/tmp/ipykernel_1/5.py")) == ["/tmp/ipykernel_1/5.py"]
    assert cell_of_file(__file__) == {}


def test_places_are_interned_and_unknown_ones_are_minus_one() -> None:
    table = SourceTable(CELLS)
    code = test_places_are_interned_and_unknown_ones_are_minus_one.__code__
    assert table.place(None, 0) == -1
    first = table.place(code, 2)
    assert table.place(code, 2) == first != table.place(code, len(code.co_code) - 2)
    assert table.locations[first].function.endswith("minus_one")
    assert table.place(code, 10**6) >= 0  # an offset outside the code: the function's first line
    assert table.locations[-1].line == code.co_firstlineno


def test_lines_a_compiler_reports_are_of_the_cell_s_numbering() -> None:
    table = SourceTable({"/tmp/ipykernel_1/5.py": CellText("cell 5", "%%tpu\na\nb", 1)})
    index = table.line("/tmp/ipykernel_1/5.py", 2, "f")
    assert table.line("/tmp/ipykernel_1/5.py", 2, "f") == index
    assert (table.locations[index].line, table.locations[index].function) == (3, "f")
    assert table.cell(index) == index and table.cell(-1) == -1
    other = table.line(__file__, 1)
    assert table.cell(other) == -1
    assert [line.text for line in table.sources()[1].lines] == ["from __future__ import annotations"]


def test_statements_over_several_lines_keep_all_their_text() -> None:
    text = "f(\n    1,\n    2,\n)\n"
    code = compile(text, "/tmp/ipykernel_1/5.py", "exec")
    table = SourceTable({"/tmp/ipykernel_1/5.py": CellText(text=text)})
    whole = max((table.locations[table.place(code, at)] for at in range(0, len(code.co_code), 2)), key=lambda p: p.end_line)
    assert (whole.line, whole.end_line) == (1, 4)
