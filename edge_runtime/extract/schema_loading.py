"""From what a user names (a file, a preset, a class, a template) to an extraction schema."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from edge_runtime import resources
from edge_runtime.errors import SchemaError
from edge_runtime.extract.schema import ExtractionSchema
from edge_runtime.extract.schema_fields import build_schema
from edge_runtime.extract.schema_resolving import SCHEMA_HINT
from edge_runtime.extract.schema_template import is_json_schema, template_to_json_schema

_CLASS = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_PRESET = re.compile(r"[a-z0-9][a-z0-9\-]{0,63}")
_MAX_FILE_BYTES = 1_000_000


def preset_names() -> list[str]:
    """The presets that can be named."""
    return sorted(path.stem for path in resources.list_data("pipelines", "schemas/*.json"))


def load_schema(ref: str | Path | Mapping[str, Any] | type) -> ExtractionSchema:
    """The extraction schema that `ref` names.

    Args:
        ref: A preset's name, a path to a JSON file (JSON Schema or short template), JSON text,
            `module:Class`, a dictionary, or a class that pydantic can describe.

    Raises:
        SchemaError: nothing is there, or the schema cannot be honoured; names keyword and place.
    """
    if isinstance(ref, Mapping):
        return _from_document(ref, name=str(ref.get("title", "schema")))
    if isinstance(ref, type):
        return _from_class(ref)
    if isinstance(ref, Path):
        return _from_file(ref)
    given: Any = ref
    if not isinstance(given, str):
        raise SchemaError(
            f"A {type(given).__name__} is not a schema",
            hint="a preset, a path, JSON text, a dictionary or a pydantic class",
        )
    return _from_text(ref.strip())


def _from_text(ref: str) -> ExtractionSchema:
    if ref.startswith("{"):
        document = _parse(ref, "the schema text")
        return _from_document(document, name=str(document.get("title", "schema")))
    path = _file_named(ref)
    if path is not None:
        return _from_file(path)
    if _CLASS.fullmatch(ref):
        return _from_class(_import_class(ref))
    preset = (
        resources.find_data("pipelines", f"schemas/{ref}.json") if _PRESET.fullmatch(ref) else None
    )
    if preset is not None:
        return _from_file(preset)
    raise SchemaError(
        f"No schema {ref!r}: neither a file nor a preset",
        hint=f"presets: {', '.join(preset_names())}; or a JSON file, module:Class, or a template",
        details={"schema": ref},
    )


def _file_named(ref: str) -> Path | None:
    """The file of that name; None where there is none or there cannot be one."""
    try:
        path = Path(ref).expanduser()
        return path if ref and path.is_file() else None
    except (OSError, RuntimeError, ValueError):
        return None


def _parse(text: str, what: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as err:
        raise SchemaError(
            f"{what} is not JSON: {err.msg} (line {err.lineno}, column {err.colno})",
            hint=SCHEMA_HINT,
        ) from err
    except RecursionError as err:
        raise SchemaError(f"{what} is nested too deeply", hint=SCHEMA_HINT) from err
    if not isinstance(document, dict):
        raise SchemaError(f"{what} has to be a JSON object", hint=SCHEMA_HINT)
    return cast("dict[str, Any]", document)


def _from_file(path: Path) -> ExtractionSchema:
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise SchemaError(f"{path} is too large for a schema", hint="at most 1 MB")
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as err:
        raise SchemaError(f"No schema file {path}", hint="check the spelling") from err
    except (OSError, UnicodeDecodeError) as err:
        raise SchemaError(
            f"The schema file {path} cannot be read: {err}",
            hint="it has to be a readable text file in UTF-8",
        ) from err
    document = _parse(text, str(path))
    return _from_document(document, name=path.name.removesuffix(".json").removesuffix(".schema"))


def _from_document(document: Mapping[str, Any], *, name: str) -> ExtractionSchema:
    if not is_json_schema(document):
        document = template_to_json_schema(document)
    try:
        return build_schema(document, name=name)
    except RecursionError as err:
        raise SchemaError("The schema is nested too deeply", hint=SCHEMA_HINT) from err


def _import_class(ref: str) -> Any:
    module_name, _, class_name = ref.partition(":")
    folder = str(Path.cwd())
    on_path = folder in sys.path or "" in sys.path
    if not on_path:
        sys.path.insert(0, folder)  # a console script does not see the user's own modules
    try:
        module = importlib.import_module(module_name)
    except ImportError as err:
        raise SchemaError(
            f"The module {module_name!r} cannot be imported: {err}",
            hint="run from the folder that holds it, or install it",
        ) from err
    finally:
        if not on_path:
            sys.path.remove(folder)
    try:
        return getattr(module, class_name)
    except AttributeError as err:
        raise SchemaError(
            f"The module {module_name!r} has no class {class_name!r}", hint="check the spelling"
        ) from err


def _from_class(cls: Any) -> ExtractionSchema:
    import pydantic

    try:
        document = pydantic.TypeAdapter(cls).json_schema()
    except pydantic.errors.PydanticUserError as err:
        raise SchemaError(
            f"pydantic cannot describe {cls!r}: {str(err).splitlines()[0]}",
            hint="name a pydantic model class",
        ) from err
    name = getattr(cls, "__name__", "schema")
    if document.get("type") != "object" and "$ref" not in document:
        raise SchemaError(f"{name} is not a model with fields", hint="name a pydantic model class")
    return build_schema(document, name=name)
