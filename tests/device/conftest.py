"""What every test of the device starts from."""

from __future__ import annotations

import pytest

from tpu_lab.device import host_first


@pytest.fixture(autouse=True)
def shapes_not_seen_before() -> None:
    """Other tests of the process have shown operators many shapes; each test begins as a fresh process would."""
    host_first.forget()
