"""Why the deferred executor ran what it had deferred, and why a cluster of calls had no program: closed lists, as in `reasons`."""

from __future__ import annotations

from .reason_list import ReasonList


class FlushReason(ReasonList):
    """Why deferred calls were run. The first nine are TorchTPU's names."""

    UNKNOWN = (
        "unknown",
        "Flushed: something else needed the memory",
        "The mode was switched, a snapshot was taken, or an operator that is not deferred wrote to a tensor in use.",
        "Keep one mode over the whole loop.",
    )
    CPU = (
        "cpu",
        "Flushed: a copy to the host",
        "The host needs the bytes, so everything that leads to them runs.",
        "Copy once after the loop, or keep the tensor on the device.",
    )
    ITEM = (
        "item",
        "Flushed: .item()",
        "Python needs the number, so everything that leads to it runs.",
        "Keep the value on the device: `total += loss.detach()`, and read it once after the loop.",
    )
    SYNCHRONIZE = (
        "synchronize",
        "Flushed: synchronize()",
        "The call asks for it.",
        "Drop `torch.tpu.synchronize()` where no time is measured.",
    )
    AUTOGRAD_POST_BACKWARD = (
        "autograd_post_backward",
        "Flushed: the end of a backward pass",
        "A training loop comes back to this place in every step, so the same cluster is met again.",
        "Nothing to do.",
    )
    REPEATED_OP_HEURISTIC = (
        "repeated_op_heuristic",
        "Flushed: the loop repeats",
        "The calls repeat themselves without a read, so they are cut after whole turns of the loop.",
        "Nothing to do.",
    )
    DEBUG_MODE = (
        "debug_mode",
        "Flushed: operators are waited for from here",
        "Launch-blocking mode runs each operator alone.",
        "Unset `TORCH_TPU_LAUNCH_BLOCKING`.",
    )
    DISTRIBUTED_OP = (
        "distributed_op",
        "Flushed: a collective",
        "A collective runs in a graph of its own.",
        "Bucket the collectives.",
    )
    COMPILE_MODE_EXECUTION = (
        "compile_mode_execution",
        "Flushed: a graph of torch.compile",
        "The graph is a program of its own, so what was deferred runs before it.",
        "Compile the whole step, or nothing of it.",
    )
    GRAPH_LIMIT = (
        "graph_limit",
        "Flushed: the cluster is long enough",
        "A longer program would begin later, take longer to compile, or not come back: the next operator's shapes keep changing.",
        "Read a value once per turn of the loop.",
    )
    MEMORY_PRESSURE = (
        "memory_pressure",
        "Flushed: memory is nearly full",
        "What is deferred might not fit once it runs, so it runs early.",
        "Delete tensors, or raise the limit with `torch.tpu.set_memory_limit(bytes)`.",
    )


class ClusterState(ReasonList):
    """How a cluster of calls ran."""

    FUSED = ("fused", "One program", "The cluster's program ran.", "")
    UNSEEN = ("unseen", "Call by call: not seen before", "Its calls ran at once; a cluster that comes back is compiled.", "")
    COMPILING = ("compiling", "Call by call: its program is being made", "It is compiled in the background and takes over when ready.", "")
    SLOWER = (
        "slower",
        "Call by call: its program was slower",
        "The program was tried and took longer than the calls one by one, so it was dropped.",
        "",
    )
    FAILED = (
        "failed",
        "Call by call: it could not be compiled",
        "XLA refused the cluster as one program, so its calls go on one by one.",
        "`torch.compile(backend='tpu')` for the function, or report the cluster.",
    )
    UNKNOWN = ("unknown", "A cluster", "A newer version of tpu_lab recorded this.", "")
