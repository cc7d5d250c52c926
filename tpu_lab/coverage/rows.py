"""The operator table as data: how each ATen overload runs here and on TorchTPU, what that was seen by, who uses it."""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ..errors import OptionError, one_of

HERE = {
    "native": "one XLA program of its own lowering, a view, or answered by the device itself",
    "decomposed": "written in other overloads",
    "fallback": "runs on the host: operands travel there and back",
    "missing": "raises NotImplementedError",
}
"""How an overload runs here."""
THERE = {"own": "own kernel", "composite": "composite", "missing": "missing"}
"""How an overload runs on TorchTPU."""
EXECUTORS = ("eager", "fuse", "compile")
FORMAT = "tpu-lab-coverage"
FILES = (".html", ".csv", ".json")


@dataclass(frozen=True)
class Overload:
    """One ATen overload."""

    name: str
    """Without `aten`: `add.Tensor`, `relu`."""
    schema: str
    family: str
    here: str
    """A key of HERE."""
    way: str
    """By which table of the device: `lowering`, `view`, `own`, `composite`, `decomposition`, `host`, `fallback`, `elsewhere`, `no kernel`."""
    torch_tpu: str
    """A key of THERE."""
    note: str = ""
    """What there is to say about `here`."""
    torch_tpu_needs: str = ""
    """The overload for want of which this one is missing on TorchTPU."""
    writes: str = ""
    """`out`, `in place`, or empty."""
    model_types: int = 0
    """In how many model types of transformers, timm and diffusers it is called, forward or backward."""
    dtypes: Mapping[str, str] = field(default_factory=dict)
    """By dtype: `pass`, `declared` (differs, with a reason) or `fail`; a dtype without samples is left out."""
    executors: Mapping[str, str] = field(default_factory=dict)
    """By executor (EXECUTORS), the same; one that no sample ran in is left out."""
    tests: tuple[str, ...] = ()
    """Operators of the conformance suite whose samples call it."""
    lowering: str = ""
    """`file.function` of its lowering in tpu_lab/lowering/."""
    calls: tuple[str, ...] = ()
    """What PyTorch's composite of it calls."""
    example: str = ""
    """A call, as Python text."""

    @property
    def aten(self) -> str:
        """`aten.add.Tensor`, `aten.relu`."""
        return f"aten.{self.name}"


@dataclass(frozen=True)
class Coverage:
    """The table. It displays itself as the explorer; rows are in `rows`, a single one is `coverage["aten.kthvalue"]`."""

    rows: tuple[Overload, ...]
    made: Mapping[str, Mapping[str, str]]
    """Of each data file, when and with which versions it was made."""
    dtypes: tuple[str, ...]
    """The dtypes that the conformance suite ran."""
    model_types: int
    """How many model types the counts are out of; 0 where that is not known."""

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Overload]:
        return iter(self.rows)

    def __getitem__(self, name: str) -> Overload:
        """The overload of a name as PyTorch, the dispatcher or a record has it. Raises KeyError with similar names."""
        bare = bare_name(name)
        found = next((row for row in self.rows if row.name == bare), None)
        if found is None:
            packet = bare.partition(".")[0]
            like = [row.aten for row in self.rows if row.name.partition(".")[0] == packet] or [row.aten for row in self.rows if packet in row.name]
            raise KeyError(f"{name} is no overload of ATen in this table" + (f"; there is {one_of(like)}" if like else ""))
        return found

    def filter(self, text: str = "", *, family: str = "", here: str = "", torch_tpu: str = "", dtype: str = "") -> Coverage:
        """The rows whose name has every word of `text`, of a family, with these statuses, with samples of a dtype. Raises OptionError."""
        for value, known, what in ((here, HERE, "here"), (torch_tpu, THERE, "torch_tpu"), (dtype, self.dtypes, "dtype")):
            if value and value not in known:
                raise OptionError(f"coverage has no {what} {value!r}", accepted=one_of(known))
        words = text.lower().replace("aten.", "").replace("aten::", "").split()
        kept = [
            row
            for row in self.rows
            if all(word in row.name.lower() for word in words)
            and (not family or family in row.family)
            and (not here or row.here == here)
            and (not torch_tpu or row.torch_tpu == torch_tpu)
            and (not dtype or dtype in row.dtypes)
        ]
        return replace(self, rows=tuple(kept))

    def counts(self) -> dict[str, int]:
        """How many rows have each status here."""
        found = Counter(row.here for row in self.rows)
        return {status: found[status] for status in HERE}

    def to_csv(self) -> str:
        """The table as CSV: a line for each overload, a column for each executor and dtype."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        plain = ("family", "here", "way", "note", "torch_tpu", "torch_tpu_needs", "model_types", "writes", "lowering")
        writer.writerow(["overload", *plain, *EXECUTORS, *self.dtypes, "verified_by", "schema"])
        for row in self.rows:
            tried = [*(row.executors.get(e, "") for e in EXECUTORS), *(row.dtypes.get(d, "") for d in self.dtypes)]
            writer.writerow([row.aten, *(getattr(row, name) for name in plain), *tried, " ".join(row.tests), row.schema])
        return out.getvalue()

    def to_data(self) -> dict[str, Any]:
        """The table as JSON data."""
        names = [f.name for f in fields(Overload)]
        rows = [{name: value for name in names if (value := getattr(row, name))} for row in self.rows]
        return {"format": FORMAT, "schema": "1.0", "made": self.made, "dtypes": self.dtypes, "model_types": self.model_types, "overloads": rows}

    def to_json(self) -> str:
        """The table as JSON text."""
        return json.dumps(self.to_data(), ensure_ascii=False)

    def to_html(self) -> str:
        """One page, the explorer, that opens from disk. Raises MissingPackageError where the front end was not built."""
        from .explorer import coverage_page

        return coverage_page(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the table; the file's ending says what: .html (the explorer), .csv or .json. Raises OptionError, OSError."""
        target = Path(path)
        makers = {".html": self.to_html, ".csv": self.to_csv, ".json": self.to_json}
        if target.suffix.lower() not in makers:
            raise OptionError(f"a coverage table cannot be saved as {target.name!r}", accepted=f"a name that ends in {one_of(FILES)}")
        target.write_text(makers[target.suffix.lower()](), encoding="utf-8")

    def summary(self) -> str:
        """The table's counts as text."""
        from .explorer import summary

        return summary(self)

    def _repr_mimebundle_(self, include: Sequence[str] | None = None, exclude: Sequence[str] | None = None) -> dict[str, Any]:
        from .explorer import mime_bundle

        return mime_bundle(self)


def bare_name(name: str) -> str:
    """`kthvalue` for `aten.kthvalue`, `aten::kthvalue`, `torch.ops.aten.kthvalue.default`."""
    return name.removeprefix("torch.ops.").removeprefix("aten::").removeprefix("aten.").removesuffix(".default")
