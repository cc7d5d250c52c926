"""What would make a program need less memory: a closed list. Which apply to a program is concluded in `analysis.program_memory`."""

from __future__ import annotations

from .reason_list import ReasonList


class MemoryAdvice(ReasonList):
    """A change that takes bytes away from the peak."""

    BFLOAT16 = (
        "TM101",
        "Half the bytes in bfloat16",
        "float32 tensors hold a large part of the peak; bfloat16 has the same range in half the bytes.",
        '`model.to(torch.bfloat16)`, or `torch.autocast("tpu", dtype=torch.bfloat16)` for activations alone.',
    )
    CHECKPOINT = (
        "TM102",
        "Compute activations again instead of keeping them",
        "Results of the forward pass are kept until backward reads them.",
        "`torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)` around the blocks that hold most.",
    )
    BATCH = (
        "TM103",
        "A smaller batch",
        "Most of the peak are intermediate results, which grow with the batch.",
        "Halve the batch and accumulate gradients over two steps.",
    )
    SHARD = (
        "TM104",
        "Spread the inputs over several chips",
        "Parameters, gradients or optimizer state fill most of the memory, whatever the batch.",
        '`tpu_lab.compile_for(..., target="v6e:2x2", sharding={name: (4, 1)})` shows what it costs in collectives.',
    )
    PADDING = (
        "TM105",
        "Sizes that fill whole tiles",
        "Much of the peak is padding: the two minor dimensions are rounded up to the tile, 8 x 128 elements for float32.",
        "Make the last dimension a multiple of 128 and the one before a multiple of 8, or swap a small last dimension with a large one.",
    )
    UNKNOWN = ("unknown", "Less memory", "A newer version of tpu_lab gave this advice.", "")
