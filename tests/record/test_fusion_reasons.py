from __future__ import annotations

from pathlib import Path

import pytest

from tpu_lab.record.fusion_codes import CODES, code_places, in_words
from tpu_lab.record.fusion_reasons import FusionReason

PAGES = Path(__file__).parents[2] / "docs" / "fusion"
WORDS = "operand can not be duplicated at: instruction_fusion.cc:671 ; Not fusing MOF at: tpu_instruction_fusion.cc:4595"


def test_the_list_is_closed_and_complete() -> None:
    ids = [reason.id for reason in FusionReason]
    assert len(set(ids)) == len(ids) and FusionReason.of("something new") is FusionReason.UNKNOWN
    for reason in FusionReason:
        assert reason.title and not reason.title.endswith(".") and len(reason.title) <= 60, reason
        assert reason.sentence.endswith(".") and reason.remedy.endswith("."), reason


@pytest.mark.parametrize("reason", FusionReason, ids=lambda r: r.id)
def test_every_reason_has_its_page(reason: FusionReason) -> None:
    text = (PAGES / f"{reason.id}.md").read_text(encoding="utf-8")
    assert all(words in text for words in (reason.title, reason.sentence, reason.remedy)), "run: make validate-fusion"


def test_there_are_no_pages_of_other_reasons() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} == {reason.id for reason in FusionReason} | {"README"}


def test_codes_are_found_in_the_compiler_s_words() -> None:
    assert code_places(WORDS) == ("instruction_fusion.cc:671", "tpu_instruction_fusion.cc:4595")
    assert in_words("instruction_fusion.cc:671") == "operand can not be duplicated" and in_words("new.cc:1") == ""
    assert all(CODES.values())
