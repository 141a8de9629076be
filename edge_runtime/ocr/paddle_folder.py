"""Model folders in the form that PaddleOCR opens: `inference.onnx` and `inference.yml`."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

_DETECTION = """\
Global:
  model_name: {name}
PreProcess:
  transform_ops:
  - DecodeImage:
      channel_first: false
      img_mode: BGR
  - DetResizeForTest: null
  - NormalizeImage:
      mean: [0.5, 0.5, 0.5]
      std: [0.5, 0.5, 0.5]
      order: hwc
  - ToCHWImage: null
PostProcess:
  name: DBPostProcess
"""

_RECOGNITION = """\
Global:
  model_name: {name}
PreProcess:
  transform_ops:
  - DecodeImage:
      channel_first: false
      img_mode: BGR
  - RecResizeImg:
      image_shape: [3, 48, 320]
PostProcess:
  name: CTCLabelDecode
  character_dict:
"""


def write_detection_folder(folder: Path, model: Path, *, name: str) -> Path:
    """Make `folder` hold the detector `model`; returns the folder."""
    return _write(folder, model, _DETECTION.format(name=name))


def write_recognition_folder(
    folder: Path, model: Path, *, name: str, characters: Sequence[str]
) -> Path:
    """Make `folder` hold the recogniser `model`; returns the folder."""
    listed = "".join(f"  - {_quoted(character)}\n" for character in characters)
    return _write(folder, model, _RECOGNITION.format(name=name) + listed)


def _write(folder: Path, model: Path, settings: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "inference.yml").write_text(settings, encoding="utf-8")
    target = folder / "inference.onnx"
    try:
        target.symlink_to(model.resolve())
    except OSError:  # file systems and platforms without links
        shutil.copyfile(model, target)
    return folder


def _quoted(text: str) -> str:
    """A YAML string; everything but letters and digits of ASCII is escaped by its number."""
    return '"' + "".join(_escaped(char) for char in text) + '"'


def _escaped(char: str) -> str:
    return char if char.isascii() and char.isalnum() else f"\\U{ord(char):08X}"
