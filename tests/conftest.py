"""Settings for every test: no TPU is looked for, one thread per process (tests run side by side), nothing from the network.

Compiled programs are kept in a folder of this run, which its processes share: many tests compile the same ones.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile

from hypothesis import settings

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # not a fork of the process that made it
        shutil.rmtree(folder, ignore_errors=True)


if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["TPU_LAB_CACHE_DIR"] = tempfile.mkdtemp(prefix="tpu-lab-tests-")
    os.environ.pop("TPU_LAB_CACHE", None)
    atexit.register(_remove, os.environ["TPU_LAB_CACHE_DIR"], os.getpid())

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background of a shell; the tests of interrupts would wait for ever
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes depends on the machine; a failure prints how to repeat it.
settings.register_profile("tpu_lab", deadline=None, print_blob=True)
settings.load_profile("tpu_lab")
