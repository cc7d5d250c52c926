"""Worker processes as the parent sees them: one node at a time, with a time limit, started again when one ends or dies."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from typing import Any

from .results import JOURNAL

START_SECONDS = 120
SUSPENDED_SECONDS = 5
"""A gap between two looks at a worker that means that nothing ran."""


class Worker:
    """One worker process and the node it is at. What it prints (an abort of XLA) goes to `worker-<number>.log` beside the journal."""

    def __init__(self, number: int, samples: int, timeout: float) -> None:
        self.number, self.samples, self.timeout = number, samples, timeout
        self.process: subprocess.Popen[str] | None = None
        self.node: str | None = None
        self.deadline = self.looked = 0.0
        self.pipe = -1
        self.pending = b""

    def give(self, node: str) -> None:
        """Hands the next node to the process, which is started if there is none."""
        fresh = self.process is None
        if self.process is None:
            reader, writer = os.pipe()
            JOURNAL.parent.mkdir(parents=True, exist_ok=True)
            log = (JOURNAL.parent / f"worker-{self.number}.log").open("a")
            command = [sys.executable, "-m", "tests.conformance.worker", str(writer), str(self.samples)]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, pass_fds=(writer,), text=True)
            os.close(writer)
            log.close()
            self.pipe, self.pending = reader, b""
        assert self.process.stdin is not None
        self.node, self.looked = node, time.monotonic()
        self.deadline = self.looked + self.timeout + (START_SECONDS if fresh else 0)
        with contextlib.suppress(BrokenPipeError):  # it died: `answer` sees the end of its results
            self.process.stdin.write(node + "\n")
            self.process.stdin.flush()

    def answer(self) -> dict[str, Any] | None:
        """The entry of the node once it is there; a process that died or took too long makes the node a failure."""
        if self.node is None:
            return None
        if b"\n" not in self.pending and select.select([self.pipe], [], [], 0)[0]:
            chunk = os.read(self.pipe, 1 << 16)
            self.pending += chunk
            if not chunk:
                return self._lost("the process died")
        if b"\n" in self.pending:
            line, self.pending = self.pending.split(b"\n", 1)
            entry: dict[str, Any] = json.loads(line)
            self.node = None
            if entry.pop("last"):
                self.end()
            return entry
        now = time.monotonic()
        if now - self.looked > SUSPENDED_SECONDS:  # the whole run was stopped (Ctrl-Z, a laptop that slept): that time does not count
            self.deadline += now - self.looked
        self.looked = now
        if now > self.deadline:
            return self._lost(f"no answer within {self.timeout:.0f} s")
        return None

    def _lost(self, what: str) -> dict[str, Any]:
        node = self.node
        code = self.end()
        self.node = None
        return {"node": node, "status": "fail", "reason": f"{what} (exit code {code})", "overloads": []}

    def end(self) -> int | None:
        """Ends the process. Returns its exit code if it ended by itself."""
        if self.process is None:
            return None
        process, self.process = self.process, None
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            code = process.wait(timeout=5 if self.node is None else 0.5)
        except subprocess.TimeoutExpired:
            code = None
            process.kill()
            process.wait()
        os.close(self.pipe)
        return code
