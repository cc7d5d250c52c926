"""Why the compiler's fusion passes left pairs apart, from its verbose log: the same decisions as in `fusion_log`, without the pictures.

The pictures of `fusion_log` take longer the larger a program is; these lines cost next to nothing. They give rejections only, the first half
of each reason, and need the variables of `environment` before libtpu loads. Read from libtpu 0.0.42.1 (2026-12-01).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from .fusion_log import REJECTED, Step, cleaned

NAME = "fusion_words.log"
"""The file in a dump folder with the lines of one compile."""
_LINE = re.compile(r"^I\d+ [\d:.]+ +(\d+) instruction_fusion\.cc:\d+\] (.*)$", re.MULTILINE)
_CONSIDERED = re.compile(r"Considering fusion of: %?(\S+) = ")
_AT_ONCE = "--logbuflevel=-1"
_REFUSED = re.compile(r"not fusing operand %?(\S+) = .* because (.*)$")


def environment(arguments: str) -> dict[str, str]:
    """What libtpu must find in its environment, besides `TPU_LOG_DIR` (a folder), to write down what its fusion passes consider: each line at
    once, and nothing on stderr. `arguments`: what `LIBTPU_INIT_ARGS` holds already."""
    return {
        "TPU_MIN_LOG_LEVEL": "0",
        "TPU_STDERR_LOG_LEVEL": "3",
        "TPU_VMODULE": "instruction_fusion=5",
        "LIBTPU_INIT_ARGS": arguments if _AT_ONCE in arguments else f"{arguments} {_AT_ONCE}".strip(),
    }


class WordLog:
    """The log that libtpu writes in this process into the folder `TPU_LOG_DIR`; a new file each time it loads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begin(self) -> None:
        """Empties the log: what is written from here on belongs to the next compile. libtpu appends, so it notices nothing."""
        for file in self._folder.glob("tpu_driver*"):
            if not file.is_symlink():
                os.truncate(file, 0)

    def keep(self, folder: Path) -> None:
        """Copies the fusion passes' lines since `begin` into a dump folder. Without a log, nothing: the pairs then have no words."""
        newest = self._folder / "tpu_driver.INFO"
        if not newest.is_file():
            return
        with newest.open("rb") as log, (folder / NAME).open("wb") as kept:
            kept.writelines(line for line in log if b"] Considering fusion of: " in line or b"] not fusing operand " in line)


def read_rejections(folder: Path) -> tuple[Step, ...]:
    """The rejections that `WordLog.keep` put into a dump folder; empty without."""
    path = folder / NAME
    return rejections(path.read_text(encoding="utf-8", errors="replace")) if path.exists() else ()


def rejections(text: str) -> tuple[Step, ...]:
    """The rejections in lines of the log, in order. Lines of another form are skipped: the log holds much else."""
    considered: dict[str, str] = {}
    steps = []
    for thread, message in _LINE.findall(text):
        consumer = _CONSIDERED.match(message)
        refused = _REFUSED.match(message)
        if consumer:
            considered[thread] = consumer[1]
        elif refused and thread in considered:
            steps.append(Step(REJECTED, refused[1], considered[thread], cleaned(refused[2])))
    return tuple(steps)
