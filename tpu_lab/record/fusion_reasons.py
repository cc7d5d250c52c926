"""Why two ops joined by an edge ended in different kernels: the closed list, each member with mechanism and remedy.

`title` names the cause, `sentence` the mechanism, `remedy` what would change it. `docs/fusion/` has a page for each, made from here, with an example
that was compiled. `make validate-fusion` compiles each with its cause removed and looks whether the two then share a kernel.
"""

from __future__ import annotations

from .reason_list import ReasonList


class FusionReason(ReasonList):
    """Why not fused."""

    COLLECTIVE = (
        "collective",
        "One of them talks to other chips",
        "A collective is a kernel of its own: data leaves the chip, so work before and after it cannot be in one loop with it.",
        "Choose a sharding in which this value need not travel, or reduce it before it does.",
    )
    HOST_TRANSFER = (
        "host_transfer",
        "One of them exchanges data with the host",
        "A transfer between host and device is a kernel of its own.",
        "Move the transfer out of the program: read the result after it.",
    )
    MEMORY_MOVE = (
        "memory_move",
        "The compiler moves the value between memories",
        "The compiler brings the value into on-chip memory, or out of it, while other kernels run; the move is a step of its own.",
        "Nothing to do: it makes the kernel that uses the value faster.",
    )
    CONTROL_FLOW = (
        "control_flow",
        "The edge of a loop or branch lies between them",
        "What a loop or branch takes and gives lies in memory while it runs; kernels do not reach across its edge.",
        "Unroll a short loop (`jax.lax.scan(..., unroll=n)`, a Python loop) or move the op to the same side.",
    )
    EMULATED_DTYPE = (
        "emulated_dtype",
        "The hardware has not this dtype",
        "Values of 64 bits and complex ones are split into parts that the hardware has; splitting and joining are calls between kernels.",
        "Use float32 or bfloat16, int32.",
    )
    SORT = (
        "sort",
        "One of them sorts",
        "Sorting moves every element past the others, so it is a kernel of its own; work on its input and result is not in it.",
        "Sort less, or ask for less: `torch.topk`, `max`, or a mask by threshold.",
    )
    GATHER_SCATTER = (
        "gather_scatter",
        "One of them reads or writes at computed places",
        "Gather and scatter address memory by values; their kernel does that alone, without the arithmetic around them.",
        "For a small table use `one_hot(index) @ table`; for fixed places a slice.",
    )
    RANDOM = (
        "random",
        "One of them draws random bits by the hardware's generator",
        "The generator is a kernel of its own with a state; work on its bits comes in the next kernel.",
        "Draw fewer values, or keep a mask and use it several times.",
    )
    CUSTOM_CALL = (
        "custom_call",
        "One of them is a kernel that was written by hand",
        "A custom call (Pallas, or one of the compiler's own such as its online softmax) is closed: nothing is fused into it or out of it.",
        "Do the work inside that kernel, or write the op in plain operations.",
    )
    LAYOUT_CHANGE = (
        "layout_change",
        "A copy changes the layout between them",
        "The value is written once more in another order of dimensions, because the other side wants it so; such a copy is a kernel of its own.",
        "Drop the transpose, or choose a dimension order that both sides want: last dimension widest, features last.",
    )
    WINDOW = (
        "window",
        "One of them works on windows",
        "Pooling and cumulative sums read overlapping windows of their input, which their kernel wants in memory in full.",
        "For a pool without overlap: reshape and reduce; for cumsum over a short axis: a product with a triangular matrix.",
    )
    TWO_MATMULS = (
        "two_matmuls",
        "Both are matrix products",
        "A kernel drives the matrix unit for one product; only in some chains is a product computed inside the kernel of the next.",
        "Join products that share an input into one (`qkv` instead of `q`, `k`, `v`), or write the pair as one Pallas kernel.",
    )
    SCALAR_RESULT = (
        "scalar_result",
        "The value is a single number",
        "A single number is computed once, apart, and read by the kernels that need it; computing it again for every element would cost more.",
        "Nothing to gain in the edge itself: it carries one number.",
    )
    REDUCTION_THEN_BROADCAST = (
        "reduction_then_broadcast",
        "A reduction must end before its result is used",
        "Every element needs the reduction's result, which is known only when all elements have been read: one pass for it, another for its use.",
        "Reduce in fewer passes: `E[x*x] - E[x]**2` takes mean and variance in one; or a Pallas kernel that keeps the row in VMEM.",
    )
    AFTER_REDUCTION = (
        "after_reduction",
        "It works on the result of a reduction",
        "On a TPU the reduction ends its kernel; work on its (much smaller) result is the next kernel.",
        "Do that work on the elements before the reduction where it is linear: `(x / n).sum()` for `x.sum() / n`.",
    )
    SMALL_VALUE = (
        "small_value",
        "A small value is spread over a large one",
        "The value has fewer elements than its user works on; it is computed once in a small kernel instead of again for every element.",
        "Nothing to gain: the edge carries little.",
    )
    USED_MORE_THAN_ONCE = (
        "used_more_than_once",
        "Several kernels need the value",
        "Fusing would compute the value once for every kernel that uses it; it is dear enough that the compiler keeps it in memory instead.",
        "Let one kernel use it: compute the other use from the fused result, or drop an output that nobody reads.",
    )
    AFTER_MATMUL = (
        "after_matmul",
        "Its user has another form than the matrix product's result",
        "Only element-wise work on the whole result rides on a matrix product; slices and most reductions of it come in the next kernel.",
        "Slice the weights instead of the result, or move the reduction behind the element-wise work.",
    )
    NOT_FUSIBLE = (
        "not_fusible",
        "The op cannot be part of a loop over elements",
        "The compiler cannot put this op (reverse, concatenate, an update in place) into the loop that its user runs.",
        "Write it another way: index arithmetic for `flip`, two uses for a concatenation.",
    )
    LIBRARY_CALL = (
        "library_call",
        "XLA:CPU calls a library for one of them",
        "On XLA:CPU matrix products, convolutions and parts of softmax are calls into ready code; work around them is in other kernels.",
        "Nothing to do, and nothing to learn for a TPU: its compiler decides by other rules.",
    )
    COMPILER_CHOICE = (
        "compiler_choice",
        "The compiler found no gain in it",
        "The compiler considered the pair and left it: by its rules or its cost model the two are better apart.",
        "Compare both ways with `optimization_barrier`; a fusion is not always faster.",
    )
    UNKNOWN = (
        "unknown",
        "The compiler gave a reason without words",
        "This version has no wording for the place in the compiler's sources that decided, and no rule covers the pair.",
        "Read the original reason; report it if it stays.",
    )
