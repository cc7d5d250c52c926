"""The status of an ATen overload in TorchTPU 0.2.0: from the list of its kernels and what PyTorch's dispatcher composes.

An overload there is `own` (a kernel for its device), `composite` (PyTorch writes it in other overloads, all of which are there) or
`missing`. A structured overload is served by its `out=` kernel, a generated `out=` overload by its functional twin. Which overloads a
composite calls is read from `reached.json` (PyTorch's samples under its profiler); one that was never seen to run is taken to work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

VERSION = "0.2.0"
LIST = Path(__file__).parent / "data" / f"torch_tpu_{VERSION}.txt"
There = Literal["own", "composite", "missing"]

_BRANCHES = {
    "_scaled_dot_product_flash_attention_for_cpu": "_scaled_dot_product_fused_attention_overrideable",
    "_scaled_dot_product_flash_attention_for_cpu_backward": "_scaled_dot_product_fused_attention_overrideable_backward",
    "mkldnn_rnn_layer": "lstm.input",
    "mkldnn_rnn_layer_backward": "_thnn_fused_lstm_cell_backward_impl",
    "_fused_sdp_choice": "_scaled_dot_product_fused_attention_overrideable",
    "_slow_conv2d_forward": "convolution",
    "mkldnn_convolution": "convolution",
    "slow_conv3d_forward": "convolution",
}
"""What a composite calls instead on a device that is not the CPU."""
AUTOGRAD_KERNELS = frozenset(
    {"linear", "cross_entropy_loss", "nll_loss_nd", "ctc_loss.IntList", "ctc_loss.Tensor", "rms_norm", "repeat_interleave.self_int"}
)
"""Composites for which torch_tpu 0.2.0 registers a kernel of its own at autograd's key."""


def kernels(path: Path = LIST) -> frozenset[str]:
    """The ATen overloads with a kernel of TorchTPU's own, without `aten::`."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return frozenset(line.removeprefix("aten::") for line in lines if line.startswith("aten::"))


@dataclass
class TorchTpu:
    """Answers for one table of the dispatcher.

    `composite` tells whether PyTorch has a kernel of an overload that is written in others; `server` names the overload that serves
    another one (a structured one by its `out=` form, a generated `out=` by its twin); `calls` the sets of overloads that a composite was
    seen to call.
    """

    own: frozenset[str]
    composite: Callable[[str], bool]
    server: Mapping[str, str]
    calls: Mapping[str, Iterable[frozenset[str]]]
    _known: dict[str, tuple[There, str]] = field(default_factory=dict)

    def status(self, name: str) -> tuple[There, str]:
        """The status, and for a missing one the overload that has no kernel."""
        if name not in self._known:
            self._known[name] = ("composite", "")  # a composite that leads back to itself
            self._known[name] = self._find(name)
        return self._known[name]

    def _find(self, name: str) -> tuple[There, str]:
        name = _BRANCHES.get(name, name)
        if name in self.own or name in AUTOGRAD_KERNELS:
            return "own", ""
        server = self.server.get(name)
        if server is not None:
            status, needs = self.status(server)
            return (status, needs) if status != "composite" or self.composite(name) else ("missing", name)
        if not self.composite(name):
            return "missing", name
        ways = [self._needs(way) for way in self.calls.get(name, ())]
        if ways and all(ways):
            return "missing", min(ways)
        return "composite", ""

    def _needs(self, way: frozenset[str]) -> str:
        """The overload that one way through a composite needs and that is missing; empty if there is none."""
        for inner in sorted(way):
            status, needs = self.status(inner)
            if status == "missing":
                return needs or inner
        return ""
