"""Why the compiler's fusion passes left pairs apart, from its verbose log: the same decisions as in `fusion_log`, without the pictures.

The pictures of `fusion_log` take longer the larger a program is; these lines cost next to nothing. They give rejections only, the first half
of each reason, and need the variables of `environment` before libtpu loads. Read from libtpu 0.0.42.1 (2026-12-01).
"""

from __future__ import annotations

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
    """The log that libtpu writes in this process into the folder `TPU_LOG_DIR`."""

    def __init__(self, folder: Path) -> None:
        self._link = folder / "tpu_driver.INFO"
        self._file, self._start = self._link, 0

    def begin(self) -> None:
        """What is written from here on belongs to the next compile."""
        self._file = self._link.resolve()
        self._start = self._file.stat().st_size if self._file.is_file() else 0

    def keep(self, folder: Path) -> None:
        """Copies the fusion passes' lines since `begin` into a dump folder. Without a log, nothing: the pairs then have no words."""
        file = self._link.resolve()
        if not file.is_file():
            return
        with file.open("rb") as log, (folder / NAME).open("wb") as kept:
            log.seek(self._start if file == self._file else 0)  # libtpu begins a new file when it loads
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
