"""A sample of the conformance suite: some nodes of every family of lowerings. `make conformance` runs them all."""

from __future__ import annotations

import pytest
import torch

from tpu_lab.device import events, host_first
from tpu_lab.device.plan import plan_for
from tpu_lab.lowering import FAMILIES

from .nodes import Node, all_nodes
from .results import Declared, judged
from .witness import Witness
from .worker import examine

SAMPLE: dict[str, tuple[str, ...]] = {
    "activation": ("nn.functional.gelu|functional|float32", "nn.functional.hardshrink|noncontiguous|float64"),
    "activation_backward": ("nn.functional.gelu|gradients|float32",),
    "batch_normalization": ("nn.functional.batch_norm|gradients|float32", "_native_batch_norm_legit|gradients|float64"),
    "bessel": ("special.bessel_j0|functional|float64",),
    "binary": ("add|out|int64", "div.floor_rounding|inplace|int32", "atan2|gradgrad|float64"),
    "comparison": ("lt|out|float32", "bitwise_left_shift|functional|int64"),
    "complex": ("real|conj|complex64", "polar|functional|float32"),
    "convolution": ("nn.functional.conv2d|gradients|float32", "nn.functional.conv_transpose1d|functional|float32"),
    "distance": ("cdist|gradients|float64",),
    "embedding": ("nn.functional.embedding|gradients|float32", "nn.functional.embedding_bag|functional|float32"),
    "extremum": ("max.reduction_with_dim|out|float32", "argmin|functional|int64"),
    "factory": ("arange|out|float32", "eye|functional|bool"),
    "fft": ("fft.rfft|gradients|float32",),
    "foreach": ("_foreach_add|inplace|float32",),
    "fused_optimizer": ("optim:SGD|functional|float32",),
    "grid_sample": ("nn.functional.grid_sample|functional|float32",),
    "histogram": ("histogram|functional|float64",),
    "indexing": ("__getitem__|functional|float32", "index_put|inplace|float32"),
    "linalg": ("linalg.inv|compile|float32", "linalg.cholesky|out|float64"),
    "linalg_ldl": ("linalg.ldl_factor|functional|float64",),
    "linalg_matrix_exp": ("matrix_exp|functional|float64",),
    "linalg_orthogonal": ("linalg.qr|out|float64",),
    "loss": ("nn.functional.mse_loss|gradients|float32", "nn.functional.binary_cross_entropy|functional|float32"),
    "loss_classification": ("nn.functional.nll_loss|functional|float32",),
    "loss_ctc": ("nn.functional.ctc_loss|functional|float64",),
    "matmul": ("addmm|inplace|float64", "baddbmm|functional|bfloat16"),
    "normalization": ("nn.functional.layer_norm|gradients|float64",),
    "order_statistic": ("kthvalue|out|float32", "median|functional|int64"),
    "orthogonal_polynomials": ("special.hermite_polynomial_h|functional|float64",),
    "padding": ("nn.functional.pad.reflect|gradients|float64",),
    "pooling": ("nn.functional.max_pool2d|functional|float32",),
    "pooling_adaptive": ("nn.functional.adaptive_avg_pool2d|gradients|float64",),
    "random": ("nn.functional.dropout|functional|float32", "uniform|errors|any", "multinomial|out|float32"),
    "reduction": ("sum|functional|float16", "nansum|functional|float32", "std|gradients|float64"),
    "resize": ("nn.functional.interpolate.bilinear|functional|float32",),
    "scan": ("cumsum|out|int64", "logcumsumexp|gradients|float64"),
    "scatter": ("scatter_add|inplace|float32", "index_reduce.amax|functional|int64"),
    "segments": ("_segment_reduce.offsets|gradients|float32",),
    "shape": ("cat|out|float32", "roll|noncontiguous|bool"),
    "softmax": ("softmax|out|float32", "log_softmax|gradgrad|float64"),
    "sorting": ("sort|out|int64", "unique|functional|float32", "isin|out|float32"),
    "special_unary": ("special.erfcx|functional|float32", "digamma|gradients|float64"),
    "statistics": ("histc|functional|float32",),
    "unary": ("exp|compile|bfloat16", "sgn|conj|complex64"),
    "vector_norm": ("linalg.vector_norm|functional|float32",),
    "view": ("permute_copy|out|float32", "as_strided_copy|noncontiguous|float32"),
    "view_scatter": ("select_scatter|functional|float32",),
    "vision": ("nn.functional.unfold|gradients|float64",),
}
"""Nodes by a family that they call as a program of its own."""
WITHOUT_SAMPLES = {
    "attention": "tests/lowering/test_attention.py",
    "attention_multi_head": "tests/lowering/test_attention.py",
    "axes": "shared code",
    "bounds": "tests/lowering/test_bounds.py",
    "convolution_maps": "shared code",
    "copying": "shared code",
    "division": "shared code",
    "precision": "shared code",
    "sine": "shared code",
    "strided": "shared code",
    "grouped_matmul": "tests/lowering/test_matmul.py",
    "quantize": "tests/lowering/test_quantize.py",
    "quantize_decomposed": "tests/lowering/test_quantize.py",
    "random_rejection": "tests/lowering/test_random.py",
    "recurrent": "tests/lowering/test_recurrent.py",
    "resample": "shared code",
}
"""Families of which OpInfo has no sample, or only through others, and where they are tested."""


@pytest.fixture(autouse=True)
def every_call_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """No host kernels: they would compare the CPU with itself."""
    monkeypatch.setattr(host_first, "COMPILED_AT_ONCE", 1 << 60)


def families(witness: Witness) -> set[str]:
    """The families of the lowerings that ran as programs."""
    found = set()
    for name, kinds in witness.kinds.items():
        namespace, _, rest = name.partition(".")
        packet = getattr(getattr(torch.ops, namespace, None), rest.partition(".")[0], None)
        op = getattr(packet, rest.partition(".")[2], None)
        lowering = plan_for(op).lowering if op is not None else None
        if lowering is not None and "xla" in kinds:
            found.add(lowering.family)
    return found


def test_every_family_has_its_place() -> None:
    assert SAMPLE.keys() | WITHOUT_SAMPLES.keys() == set(FAMILIES) and not SAMPLE.keys() & WITHOUT_SAMPLES.keys()
    nodes = {node.key for node in all_nodes()}
    assert {key for keys in SAMPLE.values() for key in keys} - nodes == set()


@pytest.mark.parametrize("family", SAMPLE)
def test_family(family: str) -> None:
    witness, declared = Witness(), Declared()
    with events.observe(witness):
        for key in SAMPLE[family]:
            entry = judged(examine(Node.of(key), 1, witness), declared)
            assert entry["status"] in ("pass", "declared"), f"{key}: {entry.get('reason', 'no sample')}"
    assert family in families(witness), sorted(witness.kinds)
