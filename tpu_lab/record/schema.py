"""The JSON schemas of a saved run and of a program, made from the dataclasses.

`python -m tpu_lab.record.schema` writes `schema.json` and `program_schema.json` beside this file.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
import types
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from .program import PROGRAM_FORMAT, PROGRAM_SCHEMA_VERSION, Program
from .reasons import ClusterState, FlushReason, RecompileReason
from .run import FORMAT, SCHEMA_VERSION, Run

PATH = Path(__file__).with_name("schema.json")
PROGRAM_PATH = Path(__file__).with_name("program_schema.json")
_SCALARS = {int: "integer", float: "number", str: "string", bool: "boolean"}


def build() -> dict[str, Any]:
    """The schema of a run (JSON Schema 2020-12). Unknown fields are allowed: a newer minor version adds some.

    `reasons` holds the words of the closed lists that a record names by id only, for readers in other languages.
    """
    shown = (FlushReason, ClusterState, RecompileReason)
    words = {kind.__name__: {one.id: [one.title, one.sentence, one.remedy] for one in kind} for kind in shown}
    return {**_document(Run, FORMAT, SCHEMA_VERSION), "reasons": words}


def build_program() -> dict[str, Any]:
    """The schema of a program."""
    return _document(Program, PROGRAM_FORMAT, PROGRAM_SCHEMA_VERSION)


def text(built: dict[str, Any] | None = None) -> str:
    """A schema (default: a run's) as the text of its file."""
    return json.dumps(built or build(), indent=1, ensure_ascii=False) + "\n"


def _document(kind: type[Any], format: str, version: str) -> dict[str, Any]:
    definitions: dict[str, Any] = {}
    _reference(kind, definitions)
    root = definitions.pop(kind.__name__)
    root["properties"]["format"] = {"const": format}
    root["properties"]["schema"] = {
        "type": "string",
        "pattern": rf"^{version.split('.')[0]}\.\d+$",
        "description": root["properties"]["schema"]["description"],
    }
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": kind.__name__, "version": version}
    return {**head, **root, "$defs": dict(sorted(definitions.items()))}


def _reference(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type; dataclasses go into `definitions` and are referred to."""
    if isinstance(kind, type) and is_dataclass(kind):
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = {}  # reserves the name while its fields are walked
            definitions[kind.__name__] = _object(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        return {"type": "array", "items": _reference(arguments[0], definitions)}
    if origin in (Union, types.UnionType):
        inner = next(a for a in arguments if a is not type(None))
        return {"anyOf": [_reference(inner, definitions), {"type": "null"}]}
    return {"type": _SCALARS[kind]}


def _object(kind: type[Any], definitions: dict[str, Any]) -> dict[str, Any]:
    hints, words = get_type_hints(kind), field_descriptions(kind)
    properties, required = {}, []
    for field in fields(kind):
        entry = _reference(hints[field.name], definitions)
        if field.name in words:
            entry = {**entry, "description": words[field.name]}
        properties[field.name] = entry
        if field.default is MISSING and field.default_factory is MISSING:
            required.append(field.name)
        elif isinstance(field.default, int | float | str | None | tuple) and not entry.get("$ref"):
            entry["default"] = list(field.default) if isinstance(field.default, tuple) else field.default
    described = {"type": "object", "description": inspect.cleandoc(kind.__doc__ or ""), "properties": properties}
    return {**described, "required": required} if required else described


def field_descriptions(kind: type) -> dict[str, str]:
    """The string literal under each field of a dataclass, by field name."""
    body = ast.parse(inspect.cleandoc("\n" + inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for before, after in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(before, ast.AnnAssign)
            and isinstance(before.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            found[before.target.id] = inspect.cleandoc(str(after.value.value))
    return found


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
    PROGRAM_PATH.write_text(text(build_program()), encoding="utf-8")
    sys.stdout.write(f"{PATH.name} and {PROGRAM_PATH.name} written\n")
