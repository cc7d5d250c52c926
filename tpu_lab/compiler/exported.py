"""`tpu_lab.load_exported`: a program that torch.export wrote, as a module that runs on the device in one piece."""

from __future__ import annotations

import os
from typing import IO, Any

import torch
from torch.export.passes import move_to_device_pass


def load_exported(program: torch.export.ExportedProgram | str | os.PathLike[str] | IO[bytes]) -> torch.nn.Module:
    """A module with the parameters, buffers and calling convention of an exported program, on the device tpu.

    `program` is what `torch.export.export` returned, or a file that `torch.export.save` wrote. Wherever it was exported, parameters, buffers and
    tensors made inside move to tpu; inputs have to be there already. The module is compiled whole when it is first called: one program
    for each size of its dynamic dimensions, buffers are updated as exported. Raises what `torch.export.load` raises for a file that is
    no exported program, and at the call PyTorch's error for inputs outside the exported constraints.
    """
    found: Any = program if isinstance(program, torch.export.ExportedProgram) else torch.export.load(program)
    module = move_to_device_pass(found, "tpu").module()
    module.compile(backend="tpu", fullgraph=True, dynamic=bool(found.range_constraints))
    return module
