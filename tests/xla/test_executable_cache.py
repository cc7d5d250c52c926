"""Programs on disk: the same numbers from another process, and whatever lies in the folder, a program is compiled rather than an error raised."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tpu_lab.errors import CacheRefusedError
from tpu_lab.record import environment
from tpu_lab.xla import _jax_internals as internals
from tpu_lab.xla import cache_folder, executable_cache, executable_store
from tpu_lab.xla.executable import Executable, compile_program
from tpu_lab.xla.executable_store import Counters


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TPU_LAB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(executable_store, "WORTH_S", 0.0)
    monkeypatch.setattr(executable_store, "counters", Counters())
    monkeypatch.setattr(executable_store, "_refused", "")
    return tmp_path / "cache"


def gelu(factor: float = 2.0, **options: Any) -> Executable:
    def function(x: jax.Array) -> list[jax.Array]:
        with jax.named_scope("n1:aten.gelu"):
            return [jax.nn.gelu(x) * factor, x.sum()]

    return compile_program(function, [jax.ShapeDtypeStruct((64, 64), np.float32)], **options)


def entries(folder: Path) -> list[Path]:
    return sorted(p for p in (folder / "executables").rglob("*") if p.is_file())


def results(program: Executable) -> list[bytes]:
    values = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    return [np.asarray(a).tobytes() for a in program.run([internals.put(values, copy=True)])]


def test_the_second_time_it_is_loaded_and_gives_the_same_bits(folder: Path) -> None:
    first, second = gelu(), gelu()
    assert (first.origin, second.origin) == ("miss", "disk")
    assert results(first) == results(second)
    assert first.cost() == second.cost()
    assert (executable_store.counters.kept, executable_store.counters.loaded) == (1, 1)
    assert executable_store.counters.saved_s > 0


def test_another_program_another_option_another_shape_are_other_entries(folder: Path) -> None:
    made = [gelu(), gelu(3.0), gelu(largest=16), gelu(options={"xla_cpu_enable_fast_math": True}), gelu(donate=[0])]
    assert {p.origin for p in made} == {"miss"} and len(entries(folder)) == len(made)


def test_a_loaded_program_consumes_what_is_donated() -> None:
    def double(x: jax.Array) -> list[jax.Array]:
        return [x * 2]

    for origin in ("miss", "disk"):
        program = compile_program(double, [jax.ShapeDtypeStruct((4096,), np.float32)], donate=[0])
        array = internals.put(np.ones(4096, np.float32), copy=True)
        address = array.unsafe_buffer_pointer()
        (result,) = program.run([array])
        assert program.origin == origin and array.is_deleted() and result.unsafe_buffer_pointer() == address


LAPACK = """
import sys, jax, jax.numpy as jnp, numpy as np
from tpu_lab.xla import _jax_internals as internals, executable_store
from tpu_lab.xla.executable import compile_program
executable_store.WORTH_S = 0.0
def function(x):
    return [jnp.linalg.cholesky(x @ x.T + 9 * jnp.eye(8)), jnp.linalg.svd(x)[1], jnp.sort(x), jnp.argsort(x), jnp.fft.fft(x).real, x @ x]
program = compile_program(function, [jax.ShapeDtypeStruct((8, 8), np.float32)])
x = internals.put(np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32), copy=True)
print(program.origin, [np.asarray(a).tobytes().hex() for a in program.run([x])])
"""


def test_another_process_loads_library_calls_and_sorts() -> None:
    told = [
        subprocess.run([sys.executable, "-c", LAPACK], capture_output=True, text=True, timeout=120, check=True).stdout.split(" ", 1) for _ in range(2)
    ]
    assert [origin for origin, _ in told] == ["miss", "disk"]
    assert told[0][1] == told[1][1]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="Linux only")
def test_another_number_of_threads_is_another_entry(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    gelu()
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(99)))
    executable_cache.machine.cache_clear()
    try:
        assert gelu().origin == "miss" and len(entries(folder)) == 2
    finally:
        executable_cache.machine.cache_clear()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="Linux only")
def test_a_program_of_one_thread_runs_in_a_process_with_more(tmp_path: Path) -> None:
    code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n" + LAPACK.replace("print(", "print(len(os.sched_getaffinity(0)), ")
    pinned = "from tpu_lab.xla import executable_cache; executable_cache.machine = lambda: b'this machine'\n"
    told = [
        subprocess.run([sys.executable, "-c", pinned + c], capture_output=True, text=True, timeout=120, check=True).stdout for c in (code, LAPACK)
    ]
    assert told[0].split(" ", 2)[1] == "miss" and told[1].split(" ", 1)[0] == "disk"
    assert told[0].split(" ", 2)[2] == told[1].split(" ", 1)[1]


@pytest.mark.parametrize("part", ["versions", "cpu"])
def test_another_version_or_cpu_is_another_entry(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    before = executable_cache.machine()
    if part == "versions":
        monkeypatch.setattr(environment.metadata, "version", lambda name: "9.9")
    else:
        monkeypatch.setattr(executable_cache, "cpu_features", lambda: ["flags : none"])
    assert executable_cache.machine.__wrapped__() != before


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="Linux only")
def test_the_features_of_the_cpu_are_known_and_its_clock_is_not() -> None:
    text = "\n".join(executable_cache.cpu_features())
    assert "flags" in text or "Features" in text
    assert "MHz" not in text and "processor" not in text


def _truncated(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _flipped(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


DAMAGES = {
    "truncated": _truncated,
    "flipped": _flipped,
    "empty": lambda content: b"",
    "short": lambda content: content[:3],
    "foreign": lambda content: b"\0" * len(content),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_a_miss_is_removed_and_counted(folder: Path, damage: str) -> None:
    expected = results(gelu())
    (entry,) = entries(folder)
    good = entry.read_bytes()
    entry.write_bytes(DAMAGES[damage](good))
    again = gelu()
    assert again.origin == "miss" and results(again) == expected
    assert executable_store.counters.damaged == 1
    assert gelu().origin == "disk"


def test_an_entry_under_the_name_of_another_is_a_miss(folder: Path) -> None:
    gelu()
    (entry,) = entries(folder)
    gelu(3.0)
    (other,) = set(entries(folder)) - {entry}
    other.write_bytes(entry.read_bytes())
    assert gelu(3.0).origin == "miss" and executable_store.counters.damaged == 1


def test_what_xla_does_not_take_is_a_miss(folder: Path) -> None:
    gelu()
    (entry,) = entries(folder)
    entry.unlink()
    key = entry.parent.name + entry.name
    executable_store.save(key, b"no executable", 1.0)
    assert gelu().origin == "miss" and executable_store.counters.damaged == 1 and executable_store.counters.loaded == 0
    assert gelu().origin == "disk"


def test_what_xla_cannot_serialise_is_not_kept(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(internals, "serialized", lambda executable: None)
    assert gelu().origin == "miss" and not entries(folder)


def test_what_compiles_quickly_is_not_kept(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(executable_store, "WORTH_S", 1e9)
    assert gelu().origin == "miss" and not entries(folder)


def test_off(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("TPU_LAB_CACHE", "0")
    assert [gelu().origin, gelu().origin] == ["miss", "miss"] and not folder.exists()


def test_who_wants_dumps_gets_a_compile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: Path) -> None:
    gelu()
    assert gelu(options={"xla_dump_to": str(tmp_path / "dump")}).origin == "miss"
    assert any((tmp_path / "dump").iterdir())
    monkeypatch.setenv("XLA_FLAGS", f"--xla_dump_to={tmp_path}")
    assert gelu().origin == "miss"


def test_folders_and_files_are_the_users_alone(folder: Path) -> None:
    gelu()
    (entry,) = entries(folder)
    modes = {stat.S_IMODE(p.stat().st_mode) for p in (folder, folder / "executables", entry.parent)}
    assert modes == {0o700} and stat.S_IMODE(entry.stat().st_mode) == 0o600


def _writable(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)


def _writable_inside(folder: Path) -> None:
    (folder / "executables").mkdir(parents=True)
    folder.chmod(0o700)
    (folder / "executables").chmod(0o722)


def _link(folder: Path) -> None:
    (folder.parent / "elsewhere").mkdir()
    folder.symlink_to(folder.parent / "elsewhere")


def _file(folder: Path) -> None:
    folder.write_text("")


REFUSED = {
    "can be written by others": _writable,
    "executables can be written by others": _writable_inside,
    "is a symbolic link": _link,
    "is not a folder": _file,
}


@pytest.mark.skipif(os.name != "posix", reason="modes and owners are POSIX's")
@pytest.mark.parametrize("words", REFUSED)
def test_a_folder_that_is_not_safe_is_refused_with_one_line(folder: Path, words: str) -> None:
    REFUSED[words](folder)
    with pytest.warns(RuntimeWarning) as told:
        assert [gelu().origin, gelu().origin] == ["miss", "miss"]
    (line,) = [str(w.message) for w in told]
    assert words in line and "\n" not in line and "TE410" in line and "Next: " in line


@pytest.mark.skipif(os.name != "posix", reason="modes and owners are POSIX's")
def test_a_folder_of_another_user_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gelu()
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    with pytest.warns(RuntimeWarning, match=f"belongs to another user .uid {mine}."):
        assert gelu().origin == "miss"
    with pytest.raises(CacheRefusedError):
        cache_folder.clear("executables")


def test_a_link_instead_of_an_entry_is_not_followed(folder: Path, tmp_path: Path) -> None:
    gelu()
    (entry,) = entries(folder)
    moved = tmp_path / "moved"
    entry.rename(moved)
    entry.symlink_to(moved)
    assert gelu().origin == "miss"
    assert not entry.is_symlink() and gelu().origin == "disk"


def test_a_folder_that_others_may_read_is_closed(folder: Path) -> None:
    (folder / "executables").mkdir(parents=True)
    (folder / "executables").chmod(0o755)
    gelu()
    assert stat.S_IMODE((folder / "executables").stat().st_mode) == 0o700


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root can write everywhere")
def test_a_folder_that_cannot_be_written_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o500)
    try:
        assert gelu().origin == "miss"
    finally:
        tmp_path.chmod(0o700)


def test_what_was_used_longest_ago_goes_first(folder: Path) -> None:
    cache_folder.opened("executables")
    keys = [executable_store.key(bytes([i])) for i in range(10)]
    for age, key in enumerate(keys):
        executable_store.save(key, os.urandom(1000), 1.0)
        os.utime(executable_store.path_of(key), (1000 - age, 1000 - age))
    assert executable_store.load(keys[9]) is not None
    _, total = cache_folder.size("executables")
    cache_folder.shrink(folder / "executables", total // 2)
    left = [i for i, key in enumerate(keys) if executable_store.path_of(key).exists()]
    assert left == [0, 1, 2, 9]
    assert cache_folder.size("executables")[1] <= total // 2


def test_unfinished_files_of_processes_that_are_gone_are_removed(folder: Path) -> None:
    gelu()
    old, new = (folder / "executables" / f".partial-{name}" for name in ("old", "new"))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    cache_folder.shrink(folder / "executables", 1 << 30)
    assert not old.exists() and new.exists() and len(entries(folder)) == 2


WRITER = """
import os, sys
from tpu_lab.xla import cache_folder, executable_store as store
cache_folder.opened(store.NAME)
bad = 0
for turn in range(200):
    for i in range(5):
        key, content = store.key(bytes([i])), bytes([i]) * 20_000
        if (found := store.load(key)) is not None:
            bad += found[0] != content
        store.save(key, content, 1.0)
    if turn % 20 == 7:
        cache_folder.shrink(cache_folder.base() / store.NAME, 100)
print(bad, store.counters.damaged)
"""


def test_processes_that_write_and_remove_at_once_never_see_half_a_file() -> None:
    running = [subprocess.Popen([sys.executable, "-c", WRITER], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [p.communicate(timeout=120)[0].strip() for p in running] == ["0 0"] * 3


def test_no_warning_where_all_is_well() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gelu()
    assert executable_store.refusal() == ""


def test_jax_keeps_its_own_cache_options() -> None:
    before = {name: getattr(jax.config, name) for name in ("jax_enable_compilation_cache", "jax_compilation_cache_dir")}
    gelu()
    assert {name: getattr(jax.config, name) for name in before} == before


def test_scopes_stay_in_what_is_kept() -> None:
    texts: Sequence[str] = [gelu()._compiled.hlo_modules()[0].to_string() for _ in range(2)]
    assert all("n1:aten.gelu" in text and "test_executable_cache" not in text for text in texts)


def test_constants_belong_to_the_key(folder: Path) -> None:
    def program(values: np.ndarray[Any, Any]) -> Executable:
        return compile_program(lambda x: [x + jnp.asarray(values)], [jax.ShapeDtypeStruct((10_000,), np.float32)])

    random = np.random.default_rng(0).standard_normal(10_000).astype(np.float32)
    other = random.copy()
    other[5000] += 1
    assert [program(v).origin for v in (random, other, random)] == ["miss", "miss", "disk"]
