"""A fusion graph as data, HTML, DOT and files."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.browser import graph_samples
from tests.record import program_samples
from tpu_lab.errors import OptionError
from tpu_lab.record.program import Program
from tpu_lab.record.program_codec import from_data
from tpu_lab.record.targets import target_named
from tpu_lab.views.graph import FusionGraph
from tpu_lab.views.program_size import shrink_program


def compiled() -> Program:
    return graph_samples.with_reasons(graph_samples.attention(target_named("v6e")))


def test_samples_of_the_extension_are_current() -> None:
    assert graph_samples.FILE.read_text(encoding="utf-8") == graph_samples.text(), "run `python -m tests.browser.graph_samples`"


def test_what_the_viewer_gets_is_a_sound_program() -> None:
    data = FusionGraph((compiled(),)).to_data()
    small = from_data(json.loads(json.dumps(data["programs"][0])))
    whole = compiled()
    assert [k.ops for k in small.kernels] == [k.ops for k in whole.kernels]
    names = [small.instructions[m].name for m in small.kernels[2].members]
    assert names == [whole.instructions[m].name for m in whole.kernels[2].members]
    assert [small.instructions[e.instruction].name for e in small.edges] == [whole.instructions[e.instruction].name for e in whole.edges]
    assert [(b.label, small.instructions[b.instruction].name) for b in small.memory.buffers] == [
        (b.label, whole.instructions[b.instruction].name) for b in whole.memory.buffers
    ]
    assert small.not_fused == whole.not_fused


def test_a_large_program_fits_into_a_notebook() -> None:
    program = from_data(graph_samples.layers(12)["programs"][0])
    assert len(program.ops) > 5_700
    data = FusionGraph((program,)).to_data()
    assert len(json.dumps(data, ensure_ascii=False, separators=(",", ":"))) < 2_000_000
    assert len(data["programs"][0]["kernels"]) == len(program.kernels)


def test_shrinking_leaves_costs_and_links() -> None:
    small = shrink_program(compiled(), 1)
    assert all(not kernel.members for kernel in small.kernels)
    assert small.time_s == compiled().time_s and len(small.edges) == len(compiled().edges)


def test_html_reads_without_scripts() -> None:
    bundle = FusionGraph((compiled(), graph_samples.attention(target_named("v6e"), "eager")))._repr_mimebundle_()
    text = bundle["text/html"]
    assert "<script" not in text and "<style" not in text
    words = re.sub(r"<[^>]+>", " ", text)
    assert "TPU v6e, eager" in words and "12" in words
    assert "Softmax needs each row" in words and "operand can not be duplicated" in words
    assert bundle["text/plain"] == "FusionGraph: attention, TPU v6e, TPU v6e, eager"


def test_hostile_names_are_text() -> None:
    seen = set()

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            seen.add(tag)

    text = compiled().to_json().replace("aten.bmm", "aten.<script>x</script>").replace("attention", "<img src=x onerror=y>")
    Tags().feed(FusionGraph((Program.from_json(text),))._repr_mimebundle_()["text/html"])
    assert not seen & {"script", "img"}


def test_dot_has_every_kernel_and_link() -> None:
    source = FusionGraph((compiled(),)).to_dot().source
    assert len(re.findall(r"^\s*k\d+ \[", source, re.MULTILINE)) == 12
    assert len(re.findall(r"k\d+ -> k\d+", source)) == len(graph_samples.EDGES)
    assert "33.6" in source and "MB" in source


def test_saving_by_ending(tmp_path: Path) -> None:
    graph = FusionGraph((program_samples.program(),))
    for ending in (".json", ".dot"):
        graph.save(tmp_path / f"graph{ending}")
    assert Program.from_json(json.dumps(json.loads((tmp_path / "graph.json").read_text())["programs"][0])) == program_samples.program()
    with pytest.raises(OptionError, match=r"ends in \.html, \.json"):
        graph.save(tmp_path / "graph.xyz")
    with pytest.raises(OptionError, match="at least one Program"):
        FusionGraph(())
