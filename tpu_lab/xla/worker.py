"""The process that holds a TPU compiler: `python -P -m tpu_lab.xla.worker`. It takes jobs from standard input and answers on standard output.

It imports no torch. Whatever libtpu prints goes to standard error, which its parent keeps in a file.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import shutil
import sys
import tempfile
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from ..record import program_codec
from ..record.targets import Target
from . import frames
from .fusion_log import LOGS
from .fusion_words import WordLog
from .target_compile import STEPS_BYTES, Compiled, Job, compile_into, is_placed, read

RSS_LIMIT = 3 << 30
"""Bytes of memory beyond which the worker ends after an answer; the next job starts a new one."""

_JOB = "job.json"
_POLL_S = 0.02
_LOGGED_S, _SMALL_S, _GRACE_S = 3.0, 2.0, 0.5
"""Processor seconds that code generation may go on: `_LOGGED_S` where every step of fusion is logged, as that log is written after it;
`_GRACE_S` if all before it took less than `_SMALL_S`, as the compiler then need not be loaded again."""


def encode(job: Job) -> dict[str, object]:
    """A job as the header of a message; its bytecode is the payload."""
    return {"target": asdict(job.target), "mode": job.mode, "effort": job.effort, "options": [list(o) for o in job.options]}


def main() -> None:
    """Serves until the parent closes the pipe or dies. With `--read FOLDER ANSWERS`: first answers the job in that folder."""
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    if len(sys.argv) == 4 and sys.argv[1] == "--read":
        answers = os.fdopen(int(sys.argv[3]), "wb")
        folder = Path(sys.argv[2])
        job, seconds = _restore(folder)
        _answer(answers, folder, job, Compiled("ok", "", seconds))
    else:
        answers = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
    with open(0, "rb", buffering=0, closefd=False) as jobs:
        while _serve(jobs, answers):
            pass


def _serve(jobs: BinaryIO, answers: BinaryIO) -> bool:
    """Answers one job; False if there is none any more, or memory has grown too much."""
    try:
        header, bytecode = frames.read(jobs)
    except EOFError:
        return False
    job = _decode(header, bytecode)
    words = WordLog(Path(os.environ["TPU_LOG_DIR"]))
    words.begin()
    folder = Path(tempfile.mkdtemp(prefix="tpu-lab-"))
    try:
        compiled = _compile(folder, job, answers, words)
    except Exception as failure:  # told to the parent, which says what to do
        shutil.rmtree(folder, ignore_errors=True)
        frames.write(answers, {"error": f"{type(failure).__name__}: {failure}"})
    else:
        _answer(answers, folder, job, compiled)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < RSS_LIMIT


def _decode(header: dict[str, Any], bytecode: bytes) -> Job:
    return Job(bytecode, Target(**header["target"]), header["mode"], header["effort"], tuple((k, v) for k, v in header["options"]))


def _answer(answers: BinaryIO, folder: Path, job: Job, compiled: Compiled) -> None:
    gc.disable()  # reading makes millions of objects that all stay, which the collector would go through again and again
    try:
        packed, error = program_codec.pack(read(folder, job, compiled), level=1), ""
    except Exception as failure:  # told to the parent, which says what to do
        packed, error = b"", f"{type(failure).__name__}: {failure}"
    finally:
        gc.enable()
    shutil.rmtree(folder, ignore_errors=True)
    frames.write(answers, {"error": error}, packed)


def _compile(folder: Path, job: Job, answers: BinaryIO, words: WordLog) -> Compiled:
    """Compiles. A quick job needs nothing of code generation, which takes nearly all the time and cannot be told to stop:
    this process starts itself anew in its own place, which ends it, and answers from the dump."""
    if job.effort != "quick" or not job.target.is_tpu:
        compiled = compile_into(folder, job)
        words.keep(folder)
        return compiled
    done: list[Compiled] = []
    failures: list[Exception] = []

    def work() -> None:
        try:
            done.append(compile_into(folder, job))
        except Exception as failure:
            failures.append(failure)

    start = time.perf_counter()
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_POLL_S)
        if is_placed(folder) and thread.is_alive():
            seconds = time.perf_counter() - start
            if len(job.bytecode) <= STEPS_BYTES:
                _wait(thread, _LOGGED_S)
            elif seconds < _SMALL_S:
                _wait(thread, _GRACE_S)
            if thread.is_alive():
                words.keep(folder)
                _start_anew(folder, job, seconds, answers)
    if failures:
        raise failures[0]
    words.keep(folder)
    return done[0]


def _wait(thread: threading.Thread, limit: float) -> None:
    """Until a thread ends, or this process has used `limit` more seconds of the processors (which pass slower on a busy machine)."""
    end = time.process_time() + limit
    while thread.is_alive() and time.process_time() < end:
        thread.join(_POLL_S)


def _start_anew(folder: Path, job: Job, seconds: float, answers: BinaryIO) -> None:
    for page in folder.glob(LOGS):
        page.unlink()  # it was being written; the log of rejections tells the rest
    (folder / _JOB).write_text(json.dumps({"seconds": seconds, **encode(job)}))
    answers.flush()
    os.set_inheritable(answers.fileno(), True)
    os.execv(sys.executable, [sys.executable, "-P", "-m", "tpu_lab.xla.worker", "--read", str(folder), str(answers.fileno())])


def _restore(folder: Path) -> tuple[Job, float]:
    """The job that was noted in a folder, without its bytecode, and how long its compile took."""
    noted = json.loads((folder / _JOB).read_text())
    return _decode(noted, b""), float(noted["seconds"])


def _end_with_parent(parent: int) -> None:
    """A compile in C++ cannot be told that the parent is gone, so a thread watches."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(0)


if __name__ == "__main__":
    main()
