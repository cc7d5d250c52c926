"""The worker process, the cache and failing softly. Compiles small programs for a real TPU generation where libtpu is installed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from tpu_lab.errors import MissingPackageError, TargetCompilerError
from tpu_lab.record import program_codec
from tpu_lab.record.program import Program
from tpu_lab.record.targets import CPU, target_named
from tpu_lab.xla import _jax_internals as internals
from tpu_lab.xla import compile_service, program_store, target_compile
from tpu_lab.xla import worker as process
from tpu_lab.xla.hlo_proto import DecodeError
from tpu_lab.xla.target_compile import Job

needs_libtpu = pytest.mark.skipif(not target_compile.installed(), reason="libtpu is not installed (Linux x86-64 only)")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPU_LAB_CACHE_DIR", str(tmp_path))


def bytecode(platform: str = "tpu", size: int = 256, layers: int = 1) -> bytes:
    def function(x: Any, w: Any) -> list[Any]:
        for i in range(layers):
            with jax.named_scope(f"n{2 * i + 1}:aten.mm"):
                x = x @ w
            with jax.named_scope(f"n{2 * i + 2}:aten.tanh"):
                x = jnp.tanh(x) + i
        return [x]

    return internals.lower_flat("program", function, [jax.ShapeDtypeStruct((size, size), jnp.float32)] * 2, (), platform, {})


def job(target: str = "v5e", effort: str = "quick", **changes: Any) -> Job:
    return Job(bytecode(**changes), target_named(target), effort=effort)


def test_the_same_program_gives_the_same_bytes_wherever_it_stands() -> None:
    assert bytecode() == bytecode()
    assert bytecode() != bytecode(layers=2)
    assert __file__.encode() not in bytecode()


def test_xla_cpu_is_a_target_too() -> None:
    made = compile_service.compile_job(Job(bytecode("cpu"), CPU))
    space = made.memory.space("RAM")
    assert made.outcome == "ok" and made.kernels and made.mapped == 1.0 and made.compiler.startswith("jaxlib ")
    assert space is not None and space.peak >= 3 * 256 * 256 * 4
    assert all(not k.bound_by and not k.time_s for k in made.kernels), "XLA:CPU has no published peaks"


@needs_libtpu
def test_quick_and_full_have_the_same_kernels() -> None:
    quick, full = (compile_service.compile_job(job(effort=effort)) for effort in ("quick", "full"))
    assert [(k.name, k.ops, k.bytes) for k in quick.kernels] == [(k.name, k.ops, k.bytes) for k in full.kernels]
    assert quick.memory.spaces == full.memory.spaces
    assert not any(k.cycles for k in quick.kernels) and any(k.cycles for k in full.kernels)
    assert full.compiler_time_s > 0 == quick.compiler_time_s
    assert full.compiler == f"libtpu {target_compile.installed()}"


def test_a_log_that_was_still_being_written_is_not_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    left: list[list[str]] = []
    monkeypatch.setattr(process.os, "execv", lambda *words: left.append([p.name for p in tmp_path.iterdir()]))
    (tmp_path / "main.3.module_0000._fusion.html").write_text("<html>const fra")
    (tmp_path / "module.after_optimizations.hlo.pb").write_bytes(b"")
    with open(os.devnull, "wb") as answers:
        process._start_anew(tmp_path, job(), 0.4, answers)
    assert [sorted(names) for names in left] == [["job.json", "module.after_optimizations.hlo.pb"]]


@needs_libtpu
def test_a_worker_that_is_killed_is_started_again() -> None:
    worker = compile_service.Worker()
    try:
        worker.compile(job())
        first = worker.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        assert program_codec.unpack(worker.compile(job("v6e"))).outcome == "ok"
        assert worker.pid not in (None, first)
    finally:
        worker.stop()
    assert worker.pid is None


@needs_libtpu
def test_a_compile_is_cancelled_by_ending_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    worker = compile_service.Worker()
    failures: list[Exception] = []

    def compile_much() -> None:
        try:
            worker.compile(job("v6e", "full", size=2048, layers=8))
        except TargetCompilerError as error:
            failures.append(error)

    thread = threading.Thread(target=compile_much)
    thread.start()
    while worker.pid is None:
        time.sleep(0.01)
    pid = worker.pid
    worker.cancel()
    thread.join(20)
    assert not thread.is_alive() and "cancelled" in str(failures[0])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    worker.stop()
    assert not list(tmp_path.glob("tpu-lab-*"))


def test_the_worker_imports_no_torch() -> None:
    code = "import tpu_lab.xla.worker, tpu_lab.xla._jax_internals, sys; assert 'jax' in sys.modules and 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-P", "-c", code], env=target_compile.quiet_environment(), check=True, timeout=200)


def test_a_worker_that_always_dies_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(TargetCompilerError, match="v5e died 2 times"):
        compile_service.Worker().compile(job())


def test_without_libtpu_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_service, "installed", lambda: "")
    with pytest.raises(MissingPackageError, match=r"pip install libtpu=="):
        compile_service.compile_job(job())
    monkeypatch.setattr(compile_service.platform, "machine", lambda: "aarch64")
    with pytest.raises(MissingPackageError, match="Linux x86-64 only"):
        compile_service.compile_job(job())
    compile_service.require(CPU)


def test_another_version_of_libtpu_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_compile, "installed", lambda: "0.0.99")
    assert "0.0.99" in target_compile.version_note() and target_compile.LIBTPU in target_compile.version_note()
    monkeypatch.setattr(target_compile, "installed", lambda: target_compile.LIBTPU)
    assert target_compile.version_note() == ""


@needs_libtpu
def test_the_installed_libtpu_is_the_one_this_package_reads() -> None:
    assert target_compile.version_note() == ""


def test_a_dump_of_another_form_is_named(tmp_path: Path) -> None:
    compiled = target_compile.Compiled("ok", "", 0.1)
    with pytest.raises(DecodeError, match="after_optimizations"):
        target_compile.read(tmp_path, job(), compiled)
    (tmp_path / "module.after_optimizations.hlo.pb").write_bytes(b"\x0a\x03abc")
    with pytest.raises(DecodeError):
        target_compile.read(tmp_path, job(), compiled)


def test_the_cache_answers_and_a_damaged_file_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Job] = []

    class Fake:
        def compile(self, job: Job) -> bytes:
            asked.append(job)
            return program_codec.pack(Program(name=f"answer {len(asked)}"))

    monkeypatch.setattr(compile_service, "worker_for", lambda effort: Fake())
    one, other = Job(bytecode("cpu"), CPU), Job(bytecode("cpu"), CPU, mode="eager")
    names = [compile_service.compile_job(j).name for j in (one, one, other, one)]
    assert names == ["answer 1", "answer 1", "answer 2", "answer 1"]
    for file in program_store.folder().glob("*.gz"):
        file.write_bytes(b"broken")
    assert compile_service.compile_job(one).name == "answer 3"
    assert len(list(program_store.folder().glob("*.gz"))) == 2


def test_a_cache_that_cannot_be_written_does_not_matter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TPU_LAB_CACHE_DIR", str(tmp_path / "file"))
    assert not program_store.save("key", program_codec.pack(Program()))
    assert program_store.load("key") is None


def test_the_oldest_programs_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(3):
        program_store.save(f"key{i}", program_codec.pack(Program(name="x" * 100)))
        os.utime(program_store.folder() / f"key{i}.json.gz", (i, i))
    size = (program_store.folder() / "key0.json.gz").stat().st_size
    monkeypatch.setattr(program_store, "LIMIT_BYTES", 3 * size)
    program_store.save("key3", program_codec.pack(Program(name="x" * 100)))
    assert program_store.load("key0") is None and program_store.load("key3") is not None


@needs_libtpu
def test_an_installed_libtpu_does_not_disturb_the_device(tmp_path: Path) -> None:
    """Neither log files nor lock, nothing on standard error, and libtpu is not even loaded; also where torch.compile comes first."""
    code = (
        "import torch\n"
        "torch.compile(lambda a: a + 1, backend='tpu')(torch.ones(2))\n"
        "print(torch.compile(lambda a: a + 1, backend='tpu')(torch.ones(2, device='tpu')).sum().item())\n"
        "assert not any('libtpu' in line for line in open('/proc/self/maps'))\n"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "TPU_"))} | {"TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=200)
    assert (done.stdout, done.stderr) == ("4.0\n", "")
    assert not [p.name for p in tmp_path.iterdir() if "tpu" in p.name]
