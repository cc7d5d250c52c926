from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tpu_lab.record.happenings import Fallback, Sync
from tpu_lab.record.memory import Storages
from tpu_lab.record.ops import Ops, RunProgram
from tpu_lab.record.source import Location
from tpu_lab.record.timing import Timing
from tpu_lab.record.totals import LineCost, exclusive, kernel_count, line_costs

intervals = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20), st.integers(0, 2)).map(lambda t: (t[0], t[0] + t[1], t[2])), max_size=12)


@given(intervals)
def test_overlap_counts_once(given: list[tuple[int, int, int]]) -> None:
    """Against counting unit steps of each thread one by one."""
    own = exclusive(given)
    for thread in range(3):
        covered = {step for start, end, on in given if on == thread for step in range(start, end)}
        assert sum(o for o, (_, _, on) in zip(own, given, strict=True) if on == thread) == len(covered)
    assert all(0 <= o <= end - start for o, (start, end, _) in zip(own, given, strict=True))


def test_an_op_within_a_sync_is_part_of_it() -> None:
    assert exclusive([(2, 5, 0), (0, 10, 0)]) == [0, 10]
    assert exclusive([(0, 10, 0), (12, 15, 0), (0, 4, 1)]) == [10, 3, 4]


def test_kernels_of_a_program() -> None:
    assert kernel_count(RunProgram("a", "xla", kernels=3)) == (3, True)
    assert kernel_count(RunProgram("a", "xla")) == (1, False)
    assert kernel_count(RunProgram("a", "compiled")) == (1, False)
    assert kernel_count(RunProgram("a", "aten")) == (1, True)
    assert [kernel_count(RunProgram("a", kind)) for kind in ("view", "host", "copy", "fallback")] == [(0, True)] * 4


def test_costs_go_to_the_cell_s_line_and_to_the_line_inside() -> None:
    places = (Location(0, 5), Location(1, 7), Location(0, 6))
    ops = Ops(
        id=(0, 1, 2),
        program=(0, 0, 0),
        module=(-1,) * 3,
        location=(1, 2, 2),
        cell_location=(0, 2, 2),
        forward=(-2, -2, 0),
        start_ns=(0, 100, 200),
        duration_ns=(40, 30, 20),
        thread=(0, 0, 1),
        reads=((), (), ()),
        writes=((0,), (1,), (2,)),
    )
    storages = Storages((10, 20, 30), (0, 1, -1), (0, 1, -1), (-1,) * 3, (-1,) * 3)
    syncs = (Sync("item", 4, 90, 60, 2, 2),)  # holds the op at 100
    fallbacks = (Fallback("x", "dtype", 1, 1, 0, 5, 2, -1),)
    assert line_costs(ops, storages, places, syncs, fallbacks) == (
        LineCost(0, 5, 40, 20, 10, 1),
        LineCost(0, 6, 20 + 60, 0, 20, 2, 1, 1),
        LineCost(1, 7, 40, 20, 10, 1),
    )


def test_ops_without_a_place_cost_no_line() -> None:
    ops = Ops((0,), (0,), (-1,), (-1,), (-1,), (-1,), (0,), (9,), (0,), ((),), ((),))
    assert line_costs(ops, Storages(), (), (), ()) == ()


def test_timing() -> None:
    assert (Timing(9).steady_ns, Timing(9).low_ns, Timing(9).high_ns, Timing(9).repeats) == (9.0, 9, 9, 0)
    several = Timing(9, (4, 1, 3, 8))
    assert (several.steady_ns, several.low_ns, several.high_ns, several.repeats) == (3.5, 1, 8, 4)
