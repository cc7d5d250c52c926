from __future__ import annotations

import os
import sysconfig
from pathlib import Path

import pytest

from tpu_lab.record import privacy


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    folder = tmp_path / "alice"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    privacy._homes.cache_clear()
    yield str(folder)
    privacy._homes.cache_clear()


def test_home_folders_go_from_text(home: str) -> None:
    assert privacy.scrub(f"open('{home}/data/x.pt')") == "open('…/data/x.pt')"
    assert privacy.scrub(f"{home} and {home}") == "… and …"
    assert privacy.scrub(f"{home}2/data") == f"{home}2/data"  # somebody else's folder of a longer name


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("/home/bob/run.py", "…/run.py"),
        ('File "/Users/bob.b/x y.py", line 3', 'File "…/x y.py", line 3'),
        (r"C:\Users\Bob\net.py", r"…\net.py"),
        ("see /homework/a and /usr/home", "see /homework/a and /usr/home"),
    ],
)
def test_other_peoples_homes_go_too(text: str, clean: str) -> None:
    assert privacy.scrub(text) == clean


def test_a_root_home_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/")
    privacy._homes.cache_clear()
    assert privacy.scrub("/etc/hosts") == "/etc/hosts"
    privacy._homes.cache_clear()


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("got tensor([[1., 2.], [3., 4.]], device='tpu:0') here", "got tensor(…) here"),
        ("tensor(0.5)", "tensor(…)"),
        ("Parameter containing:\ntensor([1.,\n 2.], requires_grad=True)", "Parameter containing:\ntensor(…)"),
        ("array([1, 2])", "array(…)"),
        ("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)", "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
    ],
)
def test_values_go_from_messages(text: str, clean: str) -> None:
    assert privacy.message(text) == clean


def test_a_long_message_is_cut() -> None:
    assert len(privacy.message("x" * 10_000)) == privacy.MESSAGE_LIMIT
    assert privacy.message("x" * 10, limit=10) == "x" * 10


def test_names_of_files_are_short_and_never_absolute(home: str) -> None:
    library = sysconfig.get_paths()["stdlib"]
    assert privacy.short_name("/opt/env/lib/python3.11/site-packages/transformers/models/bert.py") == "site-packages/transformers/models/bert.py"
    assert privacy.short_name(f"{home}/.local/lib/python3/dist-packages/x/y.py") == "site-packages/x/y.py"
    assert privacy.short_name(os.path.join(library, "json", "decoder.py")) == "python/json/decoder.py"
    assert privacy.short_name(f"{home}/work/proj/models/net.py", roots=[f"{home}/work/proj"]) == "models/net.py"
    assert privacy.short_name("/a/proj/models/net.py", roots=["/a", "/a/proj"]) == "models/net.py"  # the nearest root
    assert privacy.short_name(f"{home}/deep/down/net.py", roots=[]) == "down/net.py"
    assert privacy.short_name("<string>") == "<string>"
