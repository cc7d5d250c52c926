"""Magic cells in a real Jupyter kernel (ipykernel), on the real device."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from queue import Empty
from typing import Any

import pytest
from jupyter_client.manager import start_new_kernel

SECONDS = 120


@dataclass
class Reply:
    status: str
    content: dict[str, Any]
    text: str = ""
    outputs: list[dict[str, Any]] = field(default_factory=list)

    @property
    def traceback(self) -> str:
        return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(self.content.get("traceback", [])))


class Kernel:
    def __init__(self, manager: Any, client: Any) -> None:
        self.manager, self.client = manager, client

    def start(self, code: str) -> str:
        return str(self.client.execute(code))

    def finish(self, sent: str) -> Reply:
        content = self._reply(sent)
        reply = Reply(content["status"], content)
        while True:
            message = self.client.get_iopub_msg(timeout=SECONDS)
            if message["parent_header"].get("msg_id") != sent:
                continue
            kind, body = message["msg_type"], message["content"]
            if kind == "status" and body["execution_state"] == "idle":
                return reply
            if kind == "stream":
                reply.text += body["text"]
            elif kind in ("display_data", "execute_result"):
                reply.outputs.append(body["data"])

    def _reply(self, sent: str) -> dict[str, Any]:
        ends = time.time() + SECONDS
        while time.time() < ends:
            try:
                message = self.client.get_shell_msg(timeout=1)
            except Empty:
                continue
            if message["parent_header"].get("msg_id") == sent:
                content: dict[str, Any] = message["content"]
                return content
        raise TimeoutError("the kernel does not answer")

    def run(self, code: str) -> Reply:
        return self.finish(self.start(code))


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    manager, client = start_new_kernel(kernel_name="python3")
    made = Kernel(manager, client)
    assert made.run("%load_ext tpu_lab\nimport torch, asyncio, time").status == "ok"
    yield made
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def test_value_summary_and_device(kernel: Kernel) -> None:
    reply = kernel.run("%%tpu eager\na = torch.ones(2)\n(a * 3).tolist()")
    value, summary = reply.outputs
    assert value["text/plain"] == "[3.0, 3.0]"
    assert "eager on XLA:CPU" in summary["text/plain"] and "text/html" in summary
    assert kernel.run("str(a.device)").outputs[0]["text/plain"] == "'tpu:0'"
    assert kernel.run("torch.ones(1).device.type").outputs[0]["text/plain"] == "'cpu'"


def test_await(kernel: Kernel) -> None:
    reply = kernel.run("%%tpu eager --quiet\nb = await asyncio.sleep(0.01, 5)\nb + torch.ones(1).item()")
    assert reply.status == "ok"
    assert reply.outputs[0]["text/plain"] == "6.0"


def test_an_error_has_the_cells_line_and_no_machinery(kernel: Kernel) -> None:
    reply = kernel.run("%%tpu eager\nt = torch.ones(6)\nbad = t.view(4, 2)")
    assert (reply.status, reply.content["ename"]) == ("error", "RuntimeError")
    assert "----> 3 bad = t.view(4, 2)" in reply.traceback
    assert "tpu_lab" not in reply.traceback and "run_cell_magic" not in reply.traceback


FAULTY = (
    "x = torch.ones(4, 4)\ny = x @ torch.ones(3, 3)",
    "x = torch.ones(4, 4)\ndef f(a):\n    return a @ torch.ones(3, 3)\n\ny = f(x)",
    "x = torch.ones(4, 4)\ny = x * 2\nz = 1 / 0",
    "x = torch.ones(4, 4)\ndef cell(a):\n    b = 1\n    return a @ torch.ones(3, 3)\n\nf = lambda v: cell(v)\ny = f(x)",
)


@pytest.mark.parametrize("body", FAULTY)
def test_a_compiled_cells_traceback_reads_as_in_eager_mode(kernel: Kernel, body: str) -> None:
    kernel.run("%load_ext tpu_lab\nimport torch")
    number, arrow = r"(?m)^Cell In\[\d+\]", r"(?m)^-+> \d+ (.*)$"
    eager, compiled = (re.sub(number, "Cell In[]", kernel.run(f"%%tpu {mode}\n{body}").traceback) for mode in ("eager", "compile"))
    assert compiled.replace("compile", "eager") == eager
    assert re.findall(arrow, compiled)[0] == body.splitlines()[-1]


def test_an_error_in_autograd_has_each_frame_once(kernel: Kernel) -> None:
    body = "w = torch.ones(3, 4, requires_grad=True)\ny = (w * w).sum()\ny.backward()\ny.backward()"
    plain = kernel.run(f"import torch\n{body}").traceback
    eager = kernel.run(f"%%tpu eager\n{body}").traceback
    assert "handle_torch_function(public_api" not in eager
    frames = r"(?m)^File .*, in (\S+)\("
    assert re.findall(frames, eager) == re.findall(frames, plain)


@pytest.mark.parametrize("wrong", ["t @ t", "t.view(5)", "t.frobnicate()"])
def test_an_error_outside_a_magic_cell_has_none_of_our_frames(kernel: Kernel, wrong: str) -> None:
    reply = kernel.run(f"import torch\nt = torch.ones(3, 4, device='tpu')\n{wrong}")
    assert f"----> 3 {wrong}" in reply.traceback
    assert "tpu_lab" not in reply.traceback and "_ops.py" not in reply.traceback


def test_warnings_point_at_the_cells_line(kernel: Kernel) -> None:
    reply = kernel.run("%%tpu eager\nx = torch.ones(2, 3)\ny = torch.cross(x, x)\nz = torch.nn.functional.softmax(x)")
    found = re.findall(r"(?m)^(\S+):(\d+): UserWarning: (Using torch.cross|Implicit dimension)", reply.text)
    assert [(int(line), what) for _, line, what in found] == [(3, "Using torch.cross"), (4, "Implicit dimension")]
    assert "tpu_lab" not in reply.text and "y = torch.cross(x, x)" in reply.text


def test_a_wrong_option(kernel: Kernel) -> None:
    reply = kernel.run("%%tpu egar\nran = True")
    assert reply.status == "error"
    assert "Accepted: eager, fuse, compile or compare" in reply.text
    assert kernel.run("'ran' in globals()").outputs[0]["text/plain"] == "False"


def test_interrupt(kernel: Kernel) -> None:
    sent = kernel.start("%%tpu eager\nprint('on', flush=True)\nkept = torch.arange(3.0)\nz = kept\nwhile True:\n    z = z + 1\n    z.sum().item()")
    time.sleep(3)
    kernel.manager.interrupt_kernel()
    reply = kernel.finish(sent)
    assert reply.content["ename"] == "KeyboardInterrupt"
    assert kernel.run("%%tpu eager --quiet\n(kept * 2).tolist()").outputs[0]["text/plain"] == "[0.0, 2.0, 4.0]"


def test_an_unchanged_cell_runs_again_without_compiling(kernel: Kernel) -> None:
    cell = "%%tpu compile --quiet\ny = (torch.ones(3) * 2).sum()\nfloat(y)"
    assert kernel.run(cell).outputs[0]["text/plain"] == "6.0"
    kernel.run("from torch._dynamo.utils import counters\ncounters.clear()")
    assert kernel.run(cell).outputs[0]["text/plain"] == "6.0"
    assert kernel.run("counters['frames']['total'], counters['stats']['unique_graphs']").outputs[0]["text/plain"] == "(0, 0)"


TRAIN = """\
for rows in torch.randperm(12).split(4):
    optimizer.zero_grad()
    noise = torch.rand(4, 3)
    loss = (model(x[rows] + noise) - y[rows]).pow(2).mean()
    loss.backward()
    optimizer.step()
    seen.append(loss.item())
print("trained", len(seen))"""
SETUP = """\
%%tpu eager --quiet
torch.manual_seed(2)
x = torch.linspace(-1, 1, 36).view(12, 3)
y = x.sum(dim=1, keepdim=True)
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.2), torch.nn.Linear(4, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
seen = []"""
STATE = "[seen, model[0].weight.tolist(), [s['exp_avg'].tolist() for s in optimizer.state.values()], torch.rand(2, device='tpu').tolist()]"


def test_compare_restores_the_device_and_replays_its_random_numbers(kernel: Kernel) -> None:
    kernel.run(SETUP)
    kernel.run(f"%%tpu eager --quiet\n{TRAIN}")
    right = kernel.run(STATE).outputs[0]["text/plain"]
    kernel.run(SETUP)
    reply = kernel.run(f"%%tpu compare eager compile cpu --repeat 3\n{TRAIN}")
    assert reply.status == "ok", reply.traceback
    assert reply.text == "trained 3\n"
    assert kernel.run(STATE).outputs[0]["text/plain"] == right
    kernel.run("from tpu_lab.recording.store import store\ncomparison = store.get().comparison")
    modes = "[(m.mode, m.failure, m.timing.repeats, m.difference and m.difference.max_rel < 1e-3) for m in comparison.modes]"
    assert kernel.run(modes).outputs[0]["text/plain"] == "[('eager', '', 3, True), ('compile', '', 3, True), ('cpu', '', 3, None)]"
