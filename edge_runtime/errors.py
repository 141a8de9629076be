"""Every error that edge_runtime raises on purpose.

    EdgeRuntimeError
    ├── UsageError            2  a flag, argument or value that cannot be used
    │   ├── ConfigError       2  a recipe or settings file that does not validate
    │   └── SchemaError       2  an extraction schema that cannot be honoured
    ├── MissingError          3  something has to be fetched or installed first
    │   ├── MissingDependency 3
    │   └── ModelNotFound     3
    ├── ModelError            1  a model file is there but unusable
    │   ├── ModelFileError    1  wrong magic, truncated, Git-LFS pointer, out-of-bounds offsets
    │   ├── ChecksumMismatch  1
    │   └── ModelLoadError    1  the native library refused it (its log is quoted)
    ├── DownloadError         1  a pull that did not finish
    ├── InputError            1  the document or recording cannot be read
    │   ├── UnreadableInput   1  truncated, empty or not an image
    │   ├── PasswordRequired  1
    │   └── InputTooLarge     4
    ├── CapabilityError       4  the model, build or device cannot do what was asked
    ├── ResourceError         4  not enough memory, disk or context
    │   └── ContextOverflow   4
    ├── StageError            1  a stage failed while running
    │   └── SessionPoisoned   1  a session was used after an error, before `reset()`
    ├── OffloadError          5  a remote was needed and failed
    ├── DeadlineExceeded      1
    └── Cancelled           130

The number is the exit code of the command line. `category` is stable in JSON output.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar


class ErrorCategory(StrEnum):
    """What kind of thing went wrong; stable across releases."""

    USAGE = "usage"
    MISSING = "missing"
    MODEL = "model"
    DOWNLOAD = "download"
    INPUT = "input"
    CAPABILITY = "capability"
    RESOURCE = "resource"
    STAGE = "stage"
    OFFLOAD = "offload"
    DEADLINE = "deadline"
    CANCELLED = "cancelled"


class EdgeRuntimeError(Exception):
    """Base of all errors raised on purpose.

    Args:
        message: What happened, in one sentence.
        hint: What mends it, if possible a command to run.
        stage: The pipeline stage it happened in, when known.
        details: Machine-readable facts for JSON output.
    """

    category: ClassVar[ErrorCategory] = ErrorCategory.STAGE
    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        stage: str | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.stage = stage
        self.details: dict[str, Any] = dict(details or {})

    def to_dict(self) -> dict[str, Any]:
        """The JSON form used by `--json` and by results of failed documents."""
        return {
            "type": type(self).__name__,
            "category": self.category.value,
            "message": self.message,
            "hint": self.hint,
            "stage": self.stage,
            "details": self.details,
        }


class UsageError(EdgeRuntimeError):
    """A flag, argument or value that cannot be used."""

    category = ErrorCategory.USAGE
    exit_code = 2


class ConfigError(UsageError):
    """A recipe or settings file that does not validate."""


class SchemaError(UsageError):
    """An extraction schema that cannot be honoured."""


class MissingError(EdgeRuntimeError):
    """Something has to be fetched or installed first."""

    category = ErrorCategory.MISSING
    exit_code = 3


class MissingDependency(MissingError):
    """An optional package is not installed."""


class ModelNotFound(MissingError):
    """A model is neither on disk nor in the catalogue."""


class ModelError(EdgeRuntimeError):
    """A model file is there but cannot be used."""

    category = ErrorCategory.MODEL


class ModelFileError(ModelError):
    """A model file is malformed: wrong magic, truncated, a Git-LFS pointer, bad offsets."""


class ChecksumMismatch(ModelError):
    """A model file does not have the bytes that the catalogue promises."""


class ModelLoadError(ModelError):
    """The native library refused the model; `details["native_log"]` quotes it."""


class DownloadError(EdgeRuntimeError):
    """A pull did not finish."""

    category = ErrorCategory.DOWNLOAD


class InputError(EdgeRuntimeError):
    """The document or recording cannot be read."""

    category = ErrorCategory.INPUT


class UnreadableInput(InputError):
    """Truncated, empty, or not a picture or document at all."""


class PasswordRequired(InputError):
    """A locked document needs a password, or the given one is wrong."""


class InputTooLarge(InputError):
    """The input would need more memory or time than the limits allow."""

    exit_code = 4


class CapabilityError(EdgeRuntimeError):
    """The model, the build or the device cannot do what was asked."""

    category = ErrorCategory.CAPABILITY
    exit_code = 4


class ResourceError(EdgeRuntimeError):
    """Not enough memory, disk or context."""

    category = ErrorCategory.RESOURCE
    exit_code = 4


class ContextOverflow(ResourceError):
    """A prompt does not fit the model's context."""


class StageError(EdgeRuntimeError):
    """A stage failed while running."""


class SessionPoisoned(StageError):
    """A session was used after an error; call `reset()` first."""


class OffloadError(EdgeRuntimeError):
    """A remote endpoint was required and failed."""

    category = ErrorCategory.OFFLOAD
    exit_code = 5


class DeadlineExceeded(EdgeRuntimeError):
    """The deadline passed before the work was done."""

    category = ErrorCategory.DEADLINE


class Cancelled(EdgeRuntimeError):
    """The caller asked to stop."""

    category = ErrorCategory.CANCELLED
    exit_code = 130
