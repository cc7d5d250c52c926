from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tpu_lab.recording.memory_curve import MemoryBook, thin


@given(st.lists(st.integers(0, 1_000_000), max_size=300), st.integers(1, 50))
def test_a_thinned_curve_keeps_its_peak_and_its_order(curve: list[int], limit: int) -> None:
    points = thin(curve, limit)
    assert len(points) == min(len(curve), limit)
    assert [p.op for p in points] == sorted({p.op for p in points})
    assert all(curve[p.op] == p.nbytes for p in points)
    assert max((p.nbytes for p in points), default=0) == max(curve, default=0)


@given(st.lists(st.tuples(st.integers(1, 500), st.booleans()), max_size=40))
def test_the_peak_is_the_highest_sum_of_live_storages(steps: list[tuple[int, bool]]) -> None:
    """Against a plain dictionary of what is alive."""
    book, alive, highest = MemoryBook({}), {}, 0
    for number, (nbytes, free_oldest) in enumerate(steps):
        book.allocated(number, nbytes, number)
        alive[number] = nbytes
        highest = max(highest, sum(alive.values()))
        book.op(number, (), ((number, nbytes),), (), (), 0)
        if free_oldest:
            oldest = min(alive)
            del alive[oldest]
            book.freed(oldest, number + 1)
    memory = book.memory(True, ["op"] * len(steps), [-1] * len(steps))
    assert memory.peak_bytes == highest and memory.end_bytes == sum(alive.values())
    assert sum(tensor.nbytes for tensor in memory.largest) == highest
    assert sum(line.nbytes for line in memory.lines) == highest
