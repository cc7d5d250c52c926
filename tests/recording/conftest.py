from __future__ import annotations

import pytest

from tpu_lab.recording import frames

from . import fakes


@pytest.fixture(autouse=True)
def fake_device_is_machinery(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in's frames are passed over like those of the real device."""
    monkeypatch.setattr(frames, "_ROOTS", (*frames._ROOTS, fakes.__file__))
