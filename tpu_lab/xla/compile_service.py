"""Compiling for targets from this process: a worker process for each effort, a cache on disk, cancelling, restarting.

libtpu is never loaded here. Quick and full compiles have a worker each, so a quick answer does not wait for a full one.
"""

from __future__ import annotations

import atexit
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, BinaryIO, cast

from ..errors import MissingPackageError, RecordError, TargetCompilerError
from ..record import program_codec
from ..record.program import Program
from ..record.targets import Target
from . import compile_times, frames, program_store, worker
from .target_compile import Job, compiler_version, installed, quiet_environment, version_note

_TRIES = 2
"""How often a job is given to a worker that dies."""


def require(target: Target) -> None:
    """Raises MissingPackageError, with one line that says what to do, if programs cannot be compiled for a target here."""
    if not target.is_tpu or installed():
        return
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise MissingPackageError(
            f"target {target.label} needs libtpu, which exists for Linux x86-64 only; this is {platform.system()} {platform.machine()}",
            remedy="use a Linux x86-64 machine or container; everything else works here",
        )
    raise MissingPackageError(
        f"target {target.label} needs libtpu, which is not installed", remedy="pip install libtpu==0.0.42.1 (0.7 GB on disk, under Google's terms)"
    )


class Worker:
    """A worker process, started when the first job comes. One job at a time; threads wait for each other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._words: IO[bytes] | None = None
        self._logs: tempfile.TemporaryDirectory[str] | None = None
        self._cancelled = False

    @property
    def pid(self) -> int | None:
        """Its process id; None while none runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def compile(self, job: Job) -> bytes:
        """Compiles in the worker; the program as `program_codec.pack` makes it.

        A worker that died is started again once; Ctrl-C ends the compile by ending the worker. Raises TargetCompilerError.
        """
        with self._lock:
            self._cancelled = False
            for _ in range(_TRIES):
                try:
                    return self._ask(job)
                except (EOFError, BrokenPipeError, ConnectionError):
                    words = self._last_words()
                    self.stop()
                    if self._cancelled:
                        raise TargetCompilerError(f"compiling for {job.target.label} was cancelled") from None
                except BaseException:
                    self.stop()
                    raise
        raise TargetCompilerError(
            f"the compiler process for {job.target.label} died {_TRIES} times{': ' + words if words else ''}",
            remedy=version_note() or "check the free memory; a smaller program or --effort quick needs less",
        )

    def cancel(self) -> None:
        """Ends a compile that runs in another thread, which then raises TargetCompilerError."""
        self._cancelled = True
        process = self._process
        if process is not None:
            process.kill()

    def stop(self) -> None:
        """Ends the process; the next job starts a new one."""
        process, self._process = self._process, None
        logs, self._logs = self._logs, None
        if process is not None:
            process.kill()
            process.wait()
        if logs is not None:
            logs.cleanup()
        if process is None:
            return
        for stream in (process.stdin, process.stdout, self._words):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    continue  # what was not written has no reader any more

    def _ask(self, job: Job) -> bytes:
        process = self._running()
        frames.write(cast(BinaryIO, process.stdin), worker.encode(job), job.bytecode)
        header, packed = frames.read(cast(BinaryIO, process.stdout))
        if header["error"]:
            raise TargetCompilerError(
                f"what the compiler for {job.target.label} made could not be read: {header['error']}", remedy=version_note() or "report this message"
            )
        return packed

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.stop()
        self._words = tempfile.TemporaryFile(prefix="tpu-lab-")  # noqa: SIM115 (it is read after the worker's death)
        package = str(Path(__file__).parents[2])
        self._logs = tempfile.TemporaryDirectory(prefix="tpu-lab-")
        environment = {**quiet_environment(), "TPU_LOG_DIR": self._logs.name, "TMPDIR": self._logs.name}  # a worker that is killed leaves nothing
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [package, environment.get("PYTHONPATH", "")]))
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tpu_lab.xla.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            env=environment,
            start_new_session=True,  # Ctrl-C is for this process
        )
        return self._process

    def _last_words(self) -> str:
        """The last line the worker wrote to standard error, at most 200 characters."""
        if self._words is None:
            return ""
        self._words.seek(0, os.SEEK_END)
        self._words.seek(max(self._words.tell() - 4000, 0))
        lines = self._words.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else ""


_workers: dict[str, Worker] = {}
_workers_lock = threading.Lock()


def worker_for(effort: str) -> Worker:
    """The worker of an effort (`quick` or `full`)."""
    with _workers_lock:
        if effort not in _workers:
            _workers[effort] = Worker()
        return _workers[effort]


def cancel_compiles() -> None:
    """Ends what any thread has compiled; each gets TargetCompilerError."""
    for one in list(_workers.values()):
        one.cancel()


def stop_workers() -> None:
    """Ends all worker processes."""
    for one in list(_workers.values()):
        one.stop()


atexit.register(stop_workers)


def compile_job(job: Job, cached: bool = True) -> Program:
    """The program of a job, from the cache on disk or from a worker.

    Raises MissingPackageError without the target's compiler, TargetCompilerError if it dies or its answer cannot be read.
    """
    require(job.target)
    key = program_store.key(job, compiler_version(job.target))
    if cached:
        try:
            held = program_store.load(key)
        except RecordError:
            held = None  # damaged or of another version: made anew and written over
        if held is not None:
            return held
    start = time.perf_counter()
    packed = worker_for(job.effort).compile(job)
    compile_times.note(job, time.perf_counter() - start)
    made = program_codec.unpack(packed, "the compiler's answer")
    program_store.save(key, packed)
    return made
