"""A forked child that uses the device gets a clear error at once; one whose parent never used it has the device for itself."""

from __future__ import annotations

from .processes import run

PARENT = """
import os, sys, time, warnings
import torch

warnings.showwarning = lambda message, *rest: print("warning:", message)

def child(use):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            use()
            print("no error", flush=True)
        except BaseException as error:
            print(type(error).__name__, str(error)[:49], flush=True)
        os._exit(0)
    start = time.time()
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.time() - start > 20:
            os.kill(pid, 9)
            print("hangs", flush=True)
            os.waitpid(pid, 0)
            break
        time.sleep(0.01)
"""
USES = (
    "x + 1",
    "x.add_(1)",
    "x * 3.25",
    "x.tanh().sum()",
    "x.cpu()",
    "x.sum().item()",
    "repr(x)",
    "torch.ones(2, device='tpu')",
    "torch.empty(2, device='tpu').fill_(1)",
    "torch.ones(2).to('tpu')",
    "x.copy_(torch.ones(3))",
    "torch.rand(2, device='tpu')",
    "torch.accelerator.synchronize()",
    "compiled(x)",
)
USED = """
x = torch.ones(3, device="tpu")
(x + 1).sum().item()
x.add_(1)
compiled = torch.compile(lambda t: t * 2, backend="tpu")
compiled(x)
"""


def test_every_use_in_a_child_is_refused_and_the_parent_works_on() -> None:
    children = "".join(f"child(lambda: {use})\n" for use in USES)
    lines = run(PARENT + USED + children + "print((x + 1).tolist(), torch.tpu._is_in_bad_fork())").splitlines()
    refused = "RuntimeError Cannot re-initialize tpu in forked subprocess. To"
    assert dict(zip(USES, lines, strict=False)) == dict.fromkeys(USES, refused)
    assert lines[len(USES) :] == ["[3.0, 3.0, 3.0] False"]


def test_a_child_of_a_process_that_never_used_it_may() -> None:
    code = """
child(lambda: print((torch.ones(2, device="tpu") * 3).tolist(), flush=True))
print(torch.ones(2, device="tpu").tolist())
"""
    assert run(PARENT + code).splitlines() == ["[3.0, 3.0]", "no error", "[1.0, 1.0]"]
