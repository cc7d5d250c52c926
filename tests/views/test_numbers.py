from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpu_lab.record.ops import TensorSpec
from tpu_lab.record.timing import Timing
from tpu_lab.views import numbers as n


@pytest.mark.parametrize(
    ("value", "wide", "narrow"),
    [
        (358, "358", "358"),
        (96.3, "96.3", "96.3"),
        (9.8, "9.80", "9.8"),
        (0.31, "0.310", "0.31"),
        (0, "0", "0"),
        (1.04, "1.04", "1.0"),
        (0.913, "0.913", "0.91"),
        (999.4, "999", "999"),
        (999.6, "1,000", "1,000"),
        (131072, "131,072", "131,072"),
        (9.97, "9.97", "10.0"),
        (0.00201, "0.00201", "0.0020"),
        (3.1e-7, "3.10e−7", "3.1e−7"),
        (-3.2, "−3.20", "−3.2"),
        (math.nan, "–", "–"),
        (math.inf, "–", "–"),
    ],
)
def test_three_digits_and_two_in_narrow_places(value: float, wide: str, narrow: str) -> None:
    assert (n.digits(value), n.digits(value, narrow=True)) == (wide, narrow)


@given(st.floats(1e-5, 999.4))
def test_digits_are_true_to_three_places(value: float) -> None:
    assert float(n.digits(value).replace(n.MINUS, "-")) == pytest.approx(value, rel=0.00501)
    assert float(n.digits(value, narrow=True).replace(n.MINUS, "-")) == pytest.approx(value, rel=0.0501)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (856e6, "856 ms"),
        (5.12e9, "5.12 s"),
        (22.4e6, "22.4 ms"),
        (999_600, "1.00 ms"),
        (999_400, "999 µs"),
        (17, "17 ns"),
        (0, "0"),
        (None, "–"),
        (86_400e9, "86,400 s"),
        (-3.6e9, "−3.60 s"),
    ],
)
def test_times(ns: float | None, text: str) -> None:
    assert n.duration(ns) == text.replace(" ", n.NBSP)


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (1_040_000_000, "1.04 GB"),
        (268_435_456, "268 MB"),
        (524_288, "524 kB"),
        (999, "999 B"),
        (4, "4 B"),
        (999_999, "1.00 MB"),
        (34.4e9, "34.4 GB"),
        (0, "0"),
    ],
)
def test_bytes_are_decimal(nbytes: float, text: str) -> None:
    assert n.size(nbytes) == text.replace(" ", n.NBSP)


def test_operations() -> None:
    assert n.flops(68.7e9) == f"68.7{n.NBSP}GFLOP" and n.flops(None) == n.NOTHING


def test_one_unit_for_a_column() -> None:
    unit = n.column_unit([310e3, 9.84e6, 148e6, 358e6], n.TIME)
    assert unit.name == "ms"
    assert [n.in_unit(v, unit) for v in (310e3, 9.84e6, 148e6, 22.4e6, 0, 1_000, 50_000, None)] == [
        "0.31",
        "9.8",
        "148",
        "22.4",
        "0",
        "<0.01",
        "0.05",
        "",
    ]
    assert n.column_unit([], n.TIME).name == "ns" and n.in_unit(17.4, n.TIME[0]) == "17"


def test_counts_ratios_and_shares() -> None:
    assert n.count(131_072) == "131,072" and n.count(-5) == "−5"
    assert n.counted(1, "host sync") == f"1{n.NBSP}host sync" and n.counted(3, "host sync") == f"3{n.NBSP}host syncs"
    assert n.counted(2, "entry", "entries") == f"2{n.NBSP}entries"
    assert [n.ratio(r) for r in (1.53, 9.949, 9.96, 12.34, 101.2, 2500)] == ["1.5×", "9.9×", "9.96×", "12.3×", "101×", "2,500×"]
    assert [n.percent(p, 1040) for p in (537, 268, 67.1, 33.6, 8.4, 0.01, 0)] == [
        t.replace(" ", n.NBSP) for t in ("52 %", "26 %", "6.5 %", "3.2 %", "0.81 %", "<0.01 %", "0 %")
    ]
    assert n.percent(1, 0) == n.NOTHING


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1st"),
        (2, "2nd"),
        (3, "3rd"),
        (4, "4th"),
        (9, "9th"),
        (11, "11th"),
        (12, "12th"),
        (13, "13th"),
        (21, "21st"),
        (112, "112th"),
        (1003, "1,003rd"),
    ],
)
def test_ordinals(value: int, text: str) -> None:
    assert n.ordinal(value) == text


def test_lower_bounds() -> None:
    assert n.at_least("1.95 ms", exact=False) == f"≥{n.NBSP}1.95 ms"
    assert n.at_least("1.95 ms", exact=True) == "1.95 ms" and n.at_least("0", exact=False) == "0"


def test_shapes() -> None:
    assert n.shape(TensorSpec("bfloat16", (8, 16, 1024, 1024))) == "bf16[8,16,1024,1024]"
    assert n.shape(TensorSpec("float8_e4m3fn", ())) == "float8_e4m3fn[]" and n.shape(TensorSpec("bool", (2,))) == "bool[2]"
    assert n.shape(None) == n.NOTHING


def test_spreads() -> None:
    timing = Timing(1, (1_310_000_000, 1_270_000_000, 1_440_000_000))
    assert n.spread(timing) == f"1.27–1.44{n.NBSP}s"
    assert n.spread(timing, n.TIME[3]) == "1.27–1.44"
    assert n.spread(Timing(1, (842_000_000, 884_000_000)), n.TIME[3]) == "0.842–0.884"
    assert n.spread(Timing(1)) == n.NOTHING and n.spread(Timing(1, (5, 5))) == f"5{n.NBSP}ns"
