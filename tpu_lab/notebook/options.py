"""The words and options of `%%tpu` and `%tpu`: one parser, shared with the command line.

A wrong word or option raises `tpu_lab.errors.OptionError` with one line that says what is accepted; nothing is ever printed
or exited here.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from ..errors import OptionError, one_of

CELL_MODES = ("eager", "fuse", "compile", "compare")
"""First word of `%%tpu`."""
LEGS = ("eager", "fuse", "compile", "cpu")
"""What `%%tpu compare` can run a cell as."""
COMMANDS = ("status", "mode", "target", "runs", "compare", "report", "coverage", "doctor", "reset", "help")
"""First word of `%tpu`."""
DEFAULT_LEGS = ("eager", "compile", "cpu")
DEVICES = ("cpu", "cuda", "tpu")
TRACES = ("off", "light")
PRECISIONS = ("default", "high", "highest")
EFFORTS = ("quick", "full")


@dataclass(frozen=True)
class CellOptions:
    """What the first line of a `%%tpu` cell asks for."""

    mode: str
    """One of `CELL_MODES`."""
    legs: tuple[str, ...] = ()
    """`compare`: the modes to run, in order, each once; empty for the others."""
    device: str = "tpu"
    """Where factory functions put tensors, and whose operators are recorded."""
    default_device: bool = True
    """False: factory functions keep PyTorch's own default device."""
    repeat: int = 1
    """How often the cell runs; in a comparison, how often each mode runs after its first time (0: as often as pays)."""
    trace: str = "light"
    """`light`: the cell is recorded; `off`: it only runs."""
    precision: str | None = None
    """Precision of float32 matrix products; None leaves it as it is."""
    name: str = ""
    save: Path | None = None
    quiet: bool = False
    """True: nothing is shown besides the cell's own output."""
    targets: tuple[str, ...] = ()
    """TPU generations that the cell's graphs are compiled for as well; empty: none, or those of `%tpu target`."""
    effort: str = "quick"
    """`full`: the targets' compilers also generate code, in the background."""


@dataclass(frozen=True)
class CommandOptions:
    """What a `%tpu` line asks for."""

    command: str
    """One of `COMMANDS`."""
    words: tuple[str, ...] = ()


class _Parser(argparse.ArgumentParser):
    """An ArgumentParser whose complaints are exceptions of one line."""

    def error(self, message: str) -> NoReturn:
        asked, _, accepted = " ".join(message.removeprefix("argument ").split()).partition(_ACCEPTED)
        raise OptionError(f"{self.prog} {asked}", accepted=accepted or self.accepted())

    def accepted(self) -> str:
        """The long options, for messages."""
        return ", ".join(o for action in self._actions for o in action.option_strings if o.startswith("--"))

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """Parses words where options and positionals may be mixed. Raises OptionError."""
        known, rest = self.parse_known_intermixed_args(words)
        if rest:
            what = "option" if rest[0].startswith("-") else "word"
            raise OptionError(f"{self.prog} has no {what} {rest[0]}", accepted=self.accepted())
        return known


_ACCEPTED = "; accepted: "


def _not_accepted(text: str, accepted: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"{text!r} is not accepted{_ACCEPTED}{accepted}")


def _word_of(accepted: Sequence[str]) -> Callable[[str], str]:
    """An argparse type that takes one of a few words."""

    def word(text: str) -> str:
        if text not in accepted:
            raise _not_accepted(text, one_of(accepted))
        return text

    return word


def _repeat(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise _not_accepted(text, "a whole number from 1")
    return int(text)


def _device(text: str) -> str:
    device = _word_of(DEVICES)(text)
    if device == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise _not_accepted(text, "cpu or tpu (this process has no CUDA device)")
    return device


def _writable(text: str) -> Path:
    path = Path(text).expanduser()
    if path.is_dir() or not path.parent.is_dir():
        raise _not_accepted(text, "a file in a folder that exists")
    return path


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say how code is run and recorded; the command line has the same."""
    parser.add_argument(
        "--device", type=_device, default="tpu", metavar="cpu|cuda|tpu", help="device of factory functions and modules without device= (tpu)"
    )
    parser.add_argument("--no-default-device", action="store_true", help="leave factory functions alone")
    parser.add_argument("--repeat", type=_repeat, default=0, metavar="N", help="run N times and show the spread of the times")
    parser.add_argument("--trace", type=_word_of(TRACES), default="light", metavar="off|light", help="what is recorded (light)")
    parser.add_argument("--precision", type=_word_of(PRECISIONS), metavar="default|high|highest", help="precision of float32 matrix products")
    parser.add_argument("--name", default="", help="a name for the run")
    parser.add_argument("--save", type=_writable, metavar="FILE", help="also save the run to this file")
    parser.add_argument("--quiet", action="store_true", help="show nothing besides the cell's own output")


def cell_parser() -> _Parser:
    """The parser of a `%%tpu` line."""
    parser = _Parser(prog="%%tpu", add_help=False, allow_abbrev=False, usage="%%tpu eager|fuse|compile|compare [modes] [options]")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--help", "-h", action="store_true", help="show this text; the cell does not run")
    add_run_options(parser)
    parser.add_argument(
        "--target", action="append", default=[], metavar="v6e[,v5e]|all", help="what TPU generations make of the compiled cell (predicted)"
    )
    parser.add_argument("--effort", type=_word_of(EFFORTS), default="quick", metavar="quick|full", help="how far targets compile (quick)")
    return parser


def _split(line: str, prog: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise OptionError(f"{prog} {line.strip()}: {str(error).lower()}", accepted="quotes in pairs") from None


def parse_cell(line: str, default_mode: str = "eager") -> CellOptions | None:
    """Reads what follows `%%tpu`. Without a mode word the mode is `default_mode`. None: help was asked for. Raises OptionError."""
    parser = cell_parser()
    found = parser.parse(_split(line, "%%tpu"))
    if found.help:
        return None
    words = found.words or [default_mode]
    mode, rest = words[0], tuple(words[1:])
    if mode not in CELL_MODES:
        raise OptionError(f"%%tpu has no mode {mode!r}", accepted=one_of(CELL_MODES))
    if rest and mode != "compare":
        raise OptionError(f"%%tpu {mode} takes no further word, not {rest[0]!r}", accepted=parser.accepted())
    if len(rest) == 1:
        raise OptionError(f"%%tpu compare of {rest[0]!r} alone", accepted=f"two or more of {one_of(LEGS)}")
    for i, leg in enumerate(rest):
        if leg not in LEGS:
            raise OptionError(f"%%tpu compare has no mode {leg!r}", accepted=one_of(LEGS))
        if leg in rest[:i]:
            raise OptionError(f"%%tpu compare names {leg!r} twice", accepted=f"each of {', '.join(LEGS)} once")
    if found.trace == "off" and found.save is not None:
        raise OptionError("%%tpu --save with --trace off, which records nothing", accepted="--trace light")
    if found.trace == "off" and mode == "compare":
        raise OptionError("%%tpu compare with --trace off, which records nothing", accepted="--trace light")
    if found.target and mode != "compile":
        raise OptionError(f"%%tpu {mode} with --target", accepted="%%tpu compile --target, whose table has a row for eager on the target too")
    if mode == "compare" and not rest:
        rest = DEFAULT_LEGS
    return CellOptions(
        mode=mode,
        legs=rest,
        device=found.device,
        default_device=not found.no_default_device,
        repeat=found.repeat or (0 if mode == "compare" else 1),
        trace=found.trace,
        precision=found.precision,
        name=found.name,
        save=found.save,
        quiet=found.quiet,
        targets=tuple(found.target),
        effort=found.effort,
    )


def parse_command(line: str) -> CommandOptions:
    """Reads what follows `%tpu`. Raises OptionError."""
    words = _split(line, "%tpu") or ["status"]
    command, rest = words[0], tuple(words[1:])
    if command in ("--help", "-h"):
        return CommandOptions("help")
    if command not in COMMANDS:
        remedy = f"a cell is run with %%tpu {command}" if command in CELL_MODES else ""
        raise OptionError(f"%tpu has no command {command!r}", accepted=one_of(COMMANDS), remedy=remedy)
    most = {"mode": 1, "target": 8, "compare": 8, "report": 3, "runs": 1, "coverage": 8}.get(command, 0)
    if len(rest) > most:
        takes = {"mode": "at most one mode", "compare": "two or more run ids", "runs": "at most one run", "report": "FILE [--run NAME]"}.get(
            command, "nothing after it"
        )
        raise OptionError(f"%tpu {command} does not take {rest[most]!r}", accepted=takes)
    return CommandOptions(command, rest)


def parse_report(words: Sequence[str]) -> tuple[Path, str]:
    """The file and the run (id or name; empty: the last one) of `%tpu report FILE [--run NAME]`. Raises OptionError."""
    parser = _Parser(prog="%tpu report", add_help=False, allow_abbrev=False)
    parser.add_argument("file", nargs="*")
    parser.add_argument("--run", default="", metavar="NAME")
    found = parser.parse(words)
    if len(found.file) != 1:
        raise OptionError("%tpu report without one file", accepted="%tpu report FILE [--run NAME]")
    try:
        return _writable(found.file[0]), found.run
    except argparse.ArgumentTypeError as error:
        raise OptionError(f"%tpu report {str(error).partition(_ACCEPTED)[0]}", accepted="a file in a folder that exists") from None
