from __future__ import annotations

from dataclasses import replace

import pytest

from tests.record import samples
from tpu_lab.analysis.findings import findings, with_findings
from tpu_lab.analysis.op_groups import op_groups
from tpu_lab.record import Run
from tpu_lab.record.happenings import Fallback, GraphBreak, Recompile, Sync
from tpu_lab.record.source import Location, Source

PLACES = (Location(0, 4), Location(0, 5), Location(1, 9), Location(0, 4, 8))


def run(**parts: tuple[object, ...]) -> Run:
    return Run(sources=(Source("cell", "cell"), Source("net.py", "file")), locations=PLACES, **parts)  # type: ignore[arg-type]


def test_equal_syncs_on_one_line_are_one_finding() -> None:
    syncs = (Sync("item", 4, 0, 1_000, 0, 0), Sync("item", 4, 0, 2_000, 3, 3), Sync("item", 4, 0, 500, 1, 1), Sync("cpu", 800, 0, 9_000, 0, 0))
    found = findings(run(syncs=syncs))
    assert [(f.id, f.count, f.cost_ns, f.bytes) for f in found] == [("TL201", 1, 9_000, 800), ("TL201", 2, 3_000, 8), ("TL201", 1, 500, 4)]
    assert found[1].title == ".item() waits for the device" and "detach" in found[1].remedy and found[1].location == 0


def test_one_read_is_not_told_to_leave_a_loop() -> None:
    (once,) = findings(run(syncs=(Sync("item", 4, 0, 1_000, 0, 0),)))
    (often,) = findings(run(syncs=(Sync("item", 4, 0, 1_000, 0, 0), Sync("item", 4, 0, 1_000, 0, 0))))
    assert once.remedy.startswith("Nothing, where Python needs the value")
    assert "read it once after the loop" in often.remedy


def test_the_place_inside_tells_syncs_apart() -> None:
    syncs = (Sync("item", 4, 0, 1, 2, 0), Sync("item", 4, 0, 1, 0, 0))
    assert len(findings(run(syncs=syncs))) == 2


def test_fallbacks_name_the_operator_and_what_moved() -> None:
    row = Fallback("aten.kthvalue.default", "no_lowering", 1_000, 24, 0, 96, 0, 0)
    found = findings(run(fallbacks=(row, row, replace(row, op="aten.lu.default"))))
    assert [(f.id, f.title, f.count, f.cost_ns, f.bytes) for f in found] == [
        ("TL202", "aten.kthvalue runs on the host: no TPU lowering", 2, 192, 2_048),
        ("TL202", "aten.lu runs on the host: no TPU lowering", 1, 96, 1_024),
    ]


def test_recompiles_and_breaks_carry_the_compiler_s_words() -> None:
    found = findings(
        run(
            recompiles=(Recompile("shape", "step", "size 4, not 5", 7, 0, 0), Recompile("shape", "step", "size 4, not 6", 8, 0, 0)),
            graph_breaks=(GraphBreak("print", "builtin print", 1, 1, 3), GraphBreak("moon", "new words", 0, 0)),
        )
    )
    assert [(f.id, f.count, f.cost_ns, f.message) for f in found] == [
        ("TL301", 2, 15, "size 4, not 6"),
        ("TL302", 3, None, "builtin print"),
        ("TL302", 1, None, "new words"),
    ]
    assert found[2].title == "torch.compile ended the graph"


@pytest.mark.parametrize(("reason", "goes"), [("item", "TL201"), ("branch", "TL201"), ("print", "TL201"), ("call", ""), ("logging", "")])
def test_a_break_where_a_value_is_read_goes_away_with_the_sync(reason: str, goes: str) -> None:
    sync = Sync("item", 4, 0, 1_000, 0, 0)
    found = findings(run(syncs=(sync,), graph_breaks=(GraphBreak(reason, "", 0, 0),)))
    assert found[-1].id == "TL302" and found[-1].goes_away_with == goes
    assert bool(found[-1].remedy) == (not goes)
    elsewhere = findings(run(syncs=(sync,), graph_breaks=(GraphBreak(reason, "", 1, 1),)))
    assert not elsewhere[-1].goes_away_with


def test_a_break_without_a_line_depends_on_nothing() -> None:
    found = findings(run(syncs=(Sync("item", 4, 0, 1),), graph_breaks=(GraphBreak("item"),)))
    assert not any(f.goes_away_with for f in found)


def test_dear_ones_come_first_and_unknown_costs_last() -> None:
    found = findings(
        run(
            syncs=(Sync("item", 4, 0, 10, 0, 0), Sync("cpu", 4, 0, 30, 1, 1)),
            recompiles=(Recompile("shape", "", "", 20, 1, 1), Recompile("dtype", "", "", 0, 0, 0)),
            graph_breaks=(GraphBreak("item", "", 0, 0), GraphBreak("call", "", 2, -1)),
        )
    )
    assert [f.cost_ns for f in found] == [30, 20, 10, None, None, None]
    assert [f.goes_away_with for f in found] == ["", "", "", "", "", "TL201"]


def test_a_break_tells_what_it_led_to_and_pytorch_s_id() -> None:
    row = GraphBreak("call", "words", 0, 0, 5, id="GB0059", link="https://x/gb0059.html", remedy="Do.", graphs=2, graph_ns=70, syncs=1, sync_ns=9)
    (found,) = findings(run(graph_breaks=(row,)))
    assert (found.id, found.count, found.cost_ns, found.remedy) == ("TL302", 5, 70, "Do.")
    assert "2 extra graphs and 1 host sync on the line" in found.reason and found.reason.endswith("GB0059.")
    assert found.link == "https://x/gb0059.html"
    given_up = findings(run(graph_breaks=(replace(row, reason="too_long", uncompiled=True),)))[0]
    assert given_up.id == "TL305" and "Nothing of the function is compiled." in given_up.reason


def test_recompiles_show_the_values_that_changed() -> None:
    first = Recompile("value", "step", "n == 2", 7, 0, 0, "n == 2", "2", "3", 2, 8)
    rows = tuple(replace(first, new=str(n), version=n - 1) for n in range(3, 8))
    found = findings(run(recompiles=rows))
    assert [f.id for f in found] == ["TL301", "TL304"]
    assert "`n`: 2, then 3, 4, 5, 6 and 1 more." in found[0].reason
    assert found[1].title == "6 of 8 programs: near the limit" and "step has 6 programs" in found[1].reason
    limit = Recompile("limit", "step", "n == 2", 0, 0, 0, version=9, limit=8)
    assert [f.id for f in findings(run(recompiles=(*rows, limit)))] == ["TL301", "TL303"]
    assert [f.id for f in findings(run(recompiles=rows[:3]))] == ["TL301"]


def test_what_a_comparison_could_not_rewind_is_about_values() -> None:
    comparison = replace(samples.comparison(), not_rewound=("batches", "lines"))
    (found,) = findings(replace(run(), comparison=comparison))
    assert (found.id, found.severity, found.count) == ("TL306", "wrong", 2) and "batches, lines" in found.reason


def test_unknown_reasons_show_the_original_word() -> None:
    found = findings(run(syncs=(Sync("moonlight", 0, 0, 1, 0, 0),)))
    assert found[0].message == "moonlight" and found[0].bytes is None


def test_findings_are_worked_out_once() -> None:
    done = with_findings(run(syncs=(Sync("item", 4, 0, 1_000, 0, 0),)))
    assert len(done.findings) == 1 and with_findings(done) is done
    assert with_findings(Run()).findings == ()


def test_ops_are_grouped_by_what_and_where() -> None:
    groups = op_groups(samples.run())
    assert [(g.op, g.module, g.line, g.backward, g.count, g.time_ns) for g in groups] == [
        ("aten.kthvalue", "", 4, False, 1, 48_000_000),
        ("aten.mm", "Net.proj", 2, False, 1, 2_000_000),
        ("aten.mm", "Net.proj", 2, True, 1, 900_000),
        ("aten.mm", "", 0, True, 1, 40_000),
    ]
    assert groups[0].flops is None and groups[1].flops == 2.0e9 and groups[1].bytes == 800_000_000
    assert op_groups(samples.run(), limit=1) == groups[:1]


def test_programs_of_one_op_that_differ_only_in_operands_are_one_group() -> None:
    base = samples.run()
    other = replace(base.programs[0], inputs=(), flops=None)
    ops = replace(base.ops.keep([0, 0, 0]), program=(0, 1, 1))
    group = op_groups(replace(base, ops=ops, programs=(base.programs[0], other)))[0]
    assert (group.count, group.time_ns, group.flops, group.bytes) == (3, 6_000_000, None, 2_400_000_000)
