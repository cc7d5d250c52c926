"""Settings for every test: no TPU is looked for, one thread per process (tests run side by side), nothing from the network."""

from __future__ import annotations

import os

from hypothesis import settings

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"

# How long an example takes depends on the machine; a failure prints how to repeat it.
settings.register_profile("tpu_lab", deadline=None, print_blob=True)
settings.load_profile("tpu_lab")
