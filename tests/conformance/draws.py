"""Whether a call on the CPU drew random numbers, so that only shapes and dtypes of its results can be compared."""

from __future__ import annotations

from types import TracebackType
from unittest import mock

import torch

_SEED_OF_OPINFO = 42
"""What OpInfo's `wrapper_set_seed` seeds a random operator with before it puts the old state back."""


class Draws:
    """A block; afterwards `happened` says if the CPU's generator moved in it, also if its state was put back."""

    def __enter__(self) -> Draws:
        self.happened = False
        self._before = torch.get_rng_state()
        put_back = torch.set_rng_state
        seeded = torch.Generator().manual_seed(_SEED_OF_OPINFO).get_state()

        def noticed(state: torch.Tensor) -> None:
            self.happened |= not torch.equal(torch.get_rng_state(), seeded)
            put_back(state)

        self._patch = mock.patch.object(torch, "set_rng_state", noticed)
        self._patch.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._patch.stop()
        self.happened |= not torch.equal(torch.get_rng_state(), self._before)
