"""Every kind of graph break of the installed torch has a remedy that is more than "report an issue"."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from tpu_lab.record.break_remedies import REMEDIES, remedy_for, useful
from tpu_lab.record.reasons import BreakReason

REGISTRY: dict[str, list[dict[str, Any]]] = json.loads((Path(torch.__file__).parent / "_dynamo" / "graph_break_registry.json").read_text())


def test_each_id_of_the_installed_torch_has_a_hint_or_a_remedy() -> None:
    bare = {id for id, places in REGISTRY.items() if any(not place["Hints"] for place in places)}
    assert len(bare) > 50, "the registry is read wrongly"
    assert sorted(bare - REMEDIES.keys()) == []


def test_no_remedy_stands_for_an_id_that_is_gone_or_has_hints() -> None:
    bare = {id for id, places in REGISTRY.items() if any(not place["Hints"] for place in places)}
    assert sorted(REMEDIES.keys() - bare) == []


def test_remedies_are_sentences() -> None:
    for id, text in REMEDIES.items():
        assert text.endswith((".", "`.")) and 20 < len(text) <= 160 and "!" not in text, id


def test_standing_phrases_are_no_hints() -> None:
    phrases = ("This is likely to be a Dynamo bug. Please report an issue to PyTorch.", "Set `x = True`.", " ")
    assert useful(phrases) == ("Set `x = True`.",)


def test_the_narrowest_remedy_is_taken() -> None:
    hints = ("Set `x = True`.",)
    assert remedy_for("GB0126", hints, BreakReason.UNKNOWN) == REMEDIES["GB0126"]
    assert remedy_for("GB0170", hints, BreakReason.BRANCH) == BreakReason.BRANCH.remedy
    assert remedy_for("GB0025", hints, BreakReason.CALL) == "Set `x = True`."
    assert remedy_for("GB9999", (), BreakReason.UNKNOWN) == BreakReason.UNKNOWN.remedy
