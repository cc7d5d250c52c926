"""TorchTPU's status: against what was executed with its wheel 0.2.0 (facts of the project, section 7 of torchtpu.md, copied 2026-12-01)."""

from __future__ import annotations

import pytest

import tpu_lab
from tpu_lab.coverage.torch_tpu import TorchTpu, kernels

EXECUTED_AND_FAILED = (
    *("smooth_l1_loss", "huber_loss", "hardshrink", "softshrink", "logaddexp", "erfc", "copysign.Tensor", "hypot", "std_mean", "nansum"),
    *("kthvalue", "median", "mode", "trace", "triu_indices", "poisson", "linalg_cross", "linalg_det", "linalg_eigh", "linalg_cholesky"),
    *("_upsample_bilinear2d_aa", "upsample_trilinear3d", "_amp_update_scale_", "_int_mm", "quantize_per_tensor"),
)
MISSING_BY_REGISTRATION = ("unique_dim", "record_stream", "gcd", "igamma", "i0", "nonzero_static", "log_normal_", "geometric_")
CORE = (
    *("add.Tensor", "mm", "addmm", "bmm", "relu", "gelu", "native_layer_norm", "convolution", "embedding", "_softmax", "cat"),
    *("index.Tensor", "topk", "sum.dim_IntList"),
)
"""Some of the 193 overloads tagged core, none of which lacks a path there."""


@pytest.mark.parametrize("name", EXECUTED_AND_FAILED + MISSING_BY_REGISTRATION)
def test_what_failed_there_is_missing(name: str) -> None:
    assert tpu_lab.coverage()[name].torch_tpu == "missing"


@pytest.mark.parametrize("name", CORE)
def test_what_is_core_there_has_a_path(name: str) -> None:
    assert tpu_lab.coverage()[name].torch_tpu in ("own", "composite")


def test_the_list_is_whole() -> None:
    assert len(kernels()) == 674


def table(own: set[str], composite: set[str], server: dict[str, str], calls: dict[str, list[frozenset[str]]]) -> TorchTpu:
    return TorchTpu(frozenset(own), composite.__contains__, server, calls)


def test_a_composite_is_missing_where_all_ways_through_it_are() -> None:
    some = table(
        {"mm"}, {"either", "never", "unseen"}, {}, {"either": [frozenset({"mm"}), frozenset({"gone"})], "never": [frozenset({"mm", "gone"})]}
    )
    assert some.status("either") == ("composite", "")
    assert some.status("never") == ("missing", "gone")
    assert some.status("unseen") == ("composite", "")
    assert some.status("gone") == ("missing", "gone")


def test_a_structured_overload_is_served_by_its_out_form() -> None:
    some = table({"hypot.out"}, {"hypot", "lerp"}, {"hypot": "hypot.out", "lerp": "lerp.out"}, {})
    assert some.status("hypot") == ("own", "")
    assert some.status("lerp") == ("missing", "lerp.out")


def test_a_composite_that_leads_back_to_itself_ends() -> None:
    assert table(set(), {"a", "b"}, {}, {"a": [frozenset({"b"})], "b": [frozenset({"a"})]}).status("a") == ("composite", "")
