"""The JSON schema of a saved run, made from the dataclasses. `python -m tpu_lab.record.schema` writes `schema.json` beside this file."""

from __future__ import annotations

import ast
import inspect
import json
import sys
import types
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from .run import FORMAT, SCHEMA_VERSION, Run

PATH = Path(__file__).with_name("schema.json")
_SCALARS = {int: "integer", float: "number", str: "string", bool: "boolean"}


def build() -> dict[str, Any]:
    """The schema (JSON Schema 2020-12). Unknown fields are allowed: a newer minor version adds some."""
    definitions: dict[str, Any] = {}
    root = _reference(Run, definitions)
    run = definitions.pop("Run")
    run["properties"]["format"] = {"const": FORMAT}
    run["properties"]["schema"] = {
        "type": "string",
        "pattern": rf"^{SCHEMA_VERSION.split('.')[0]}\.\d+$",
        "description": run["properties"]["schema"]["description"],
    }
    assert root == {"$ref": "#/$defs/Run"}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Run", "version": SCHEMA_VERSION}
    return {**head, **run, "$defs": dict(sorted(definitions.items()))}


def text() -> str:
    """The schema as the text of `schema.json`."""
    return json.dumps(build(), indent=1, ensure_ascii=False) + "\n"


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
    sys.stdout.write(f"{PATH.name} written\n")
