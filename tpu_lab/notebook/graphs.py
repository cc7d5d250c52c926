"""`tpu_lab.fusion_graph`: what compilers make of a module or function, as a fusion graph to look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..analysis.not_fused import with_not_fused
from ..compiler.target import MODES, compile_for
from ..errors import OptionError, one_of
from ..views.graph import FusionGraph


def fusion_graph(
    function: Any,
    *example: Any,
    target: str | Sequence[str] = "v6e",
    modes: Sequence[str] = ("compile",),
    effort: str = "full",
    kwargs: dict[str, Any] | None = None,
) -> FusionGraph:
    """Compiles a module or function for targets you need not have, and shows the kernels. Nothing runs.

    Args:
        function: a `torch.nn.Module` or a function, as for `compile_for`.
        example: its arguments; only shapes, strides and dtypes of tensors are read.
        target: a target (`v6e`, `cpu`, …) or several, which the viewer puts side by side.
        modes: `compile`, and `eager` beside it: the same with fusion off, so that one sees what fusion buys.
        effort: `full`, or `quick`: the same kernels in a tenth of the time, without the placement in VMEM.
        kwargs: keyword arguments of the function.

    Raises what `compile_for` raises.
    """
    targets = (target,) if isinstance(target, str) else tuple(target)
    if not targets:
        raise OptionError("fusion_graph for no target", accepted="one target or several")
    for mode in modes:
        if mode not in MODES:
            raise OptionError(f"fusion_graph has no mode {mode!r}", accepted=one_of(MODES))
    # XLA:CPU has no fusion passes that can be turned off one by one.
    wanted = [(name, mode) for name in targets for mode in modes if not (name == "cpu" and mode == "eager" and len(modes) > 1)]
    made = (compile_for(function, *example, target=name, mode=mode, effort=effort, kwargs=kwargs) for name, mode in wanted)
    return FusionGraph(tuple(program if program.not_fused else with_not_fused(program) for program in made))
