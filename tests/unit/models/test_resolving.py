"""Names and paths become checked files, or an error that says what to do."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from edge_runtime.errors import ModelFileError, ModelNotFound, UsageError
from edge_runtime.models.store import ModelStore, resolve
from edge_runtime.models.variants import Marker, VariantRecord, variants_folder, write_marker
from tests.unit.models.serving import catalogue, entry, file, sha256
from tools.make_tiny_gguf import write_tiny_gguf


def a_store(tmp_path: Path, *files: dict[str, Any], **more: Any) -> ModelStore:
    return ModelStore(tmp_path / "store", catalogue=catalogue(entry(*files, **more)))


@pytest.fixture
def pulled(tmp_path: Path, tiny_gguf: Path) -> ModelStore:
    store = a_store(tmp_path, file({"kind": "local", "path": str(tiny_gguf)}))
    store.pull("one")
    return store


def small_onnx(path: Path) -> Path:
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1]) for n in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", value[:1], value[1:])
    onnx.save(helper.make_model(graph), path)
    return path


def test_name(pulled: ModelStore, tiny_gguf: Path) -> None:
    found = resolve("one", role="llm", store=pulled)
    assert found.path == pulled.root / "one" / "m.gguf"
    assert found.sha256 == sha256(tiny_gguf.read_bytes())
    assert (found.name, found.role, found.licence) == ("one", "llm", "Apache-2.0")
    assert (found.variant, found.notes) == ("original", ())
    assert found.entry is not None


def test_name_of_another_role(pulled: ModelStore) -> None:
    with pytest.raises(UsageError, match="for llm, not for ocr"):
        resolve("one", role="ocr", store=pulled)


def test_name_that_was_not_pulled(tmp_path: Path, tiny_gguf: Path) -> None:
    store = a_store(tmp_path, file({"kind": "local", "path": str(tiny_gguf)}))
    with pytest.raises(ModelNotFound) as caught:
        resolve("one", role="llm", store=store)
    assert caught.value.hint == "edge-run models pull one"


def test_unknown_name(pulled: ModelStore) -> None:
    with pytest.raises(ModelNotFound, match="'uno'"):
        resolve("uno", role="llm", store=pulled)


def test_pulled_file_that_was_overwritten(pulled: ModelStore) -> None:
    path = pulled.path("one")
    path.write_bytes(b"x" * path.stat().st_size)
    with pytest.raises(ModelFileError, match="not a GGUF file"):
        resolve("one", role="llm", store=pulled)


@pytest.mark.parametrize("as_text", [True, False])
def test_path_to_a_file(pulled: ModelStore, tmp_path: Path, tiny_gguf: Path, as_text: bool) -> None:
    path = shutil.copy(tiny_gguf, tmp_path / "other.gguf")
    found = resolve(str(path) if as_text else path, role="llm", store=pulled)
    assert found.path == path
    assert found.name == "other"
    assert found.sha256 == sha256(tiny_gguf.read_bytes())
    assert found.entry is None


def test_path_that_is_not_there(pulled: ModelStore, tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="no model at"):
        resolve(str(tmp_path / "none.gguf"), role="llm", store=pulled)


def test_folder_with_one_model(pulled: ModelStore, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    path = write_tiny_gguf(folder / "m.gguf")
    assert resolve(str(folder), role="llm", store=pulled).path == path
    write_tiny_gguf(folder / "n.gguf")
    with pytest.raises(ModelFileError, match="2 GGUF models"):
        resolve(str(folder), role="llm", store=pulled)


def test_file_that_is_no_model(pulled: ModelStore, tmp_path: Path) -> None:
    path = tmp_path / "notes.gguf"
    path.write_text("these are notes")
    with pytest.raises(ModelFileError, match="not a GGUF file"):
        resolve(path, role="llm", store=pulled)


def test_recogniser_folder(pulled: ModelStore, tmp_path: Path) -> None:
    folder = tmp_path / "ocr"
    folder.mkdir()
    det, rec = small_onnx(folder / "my_det.onnx"), small_onnx(folder / "my_rec.onnx")
    found = resolve(str(folder), role="ocr", store=pulled)
    assert found.files == {"det": det, "rec": rec}
    with pytest.raises(UsageError, match="several files"):
        _ = found.path
    (folder / "my_keys.txt").write_text("a\nb\n")
    more = resolve(str(folder), role="ocr", store=pulled)
    assert set(more.files) == {"det", "rec", "keys"}
    assert more.sha256 != found.sha256
    rec.unlink()
    with pytest.raises(ModelFileError, match=r"0 files like \*rec"):
        resolve(str(folder), role="ocr", store=pulled)


def test_recogniser_has_to_be_a_folder(pulled: ModelStore, tmp_path: Path) -> None:
    path = small_onnx(tmp_path / "det.onnx")
    with pytest.raises(UsageError, match="must be a folder"):
        resolve(path, role="ocr", store=pulled)


def test_orientation_model_by_path(pulled: ModelStore, tmp_path: Path) -> None:
    path = small_onnx(tmp_path / "turn.onnx")
    assert resolve(path, role="orientation", store=pulled).path == path
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ModelFileError):
        resolve(path, role="orientation", store=pulled)


def optimise(store: ModelStore, original: Path, **changes: Any) -> Path:
    """Put a copy and a marker where `optimize` would."""
    digest = sha256(original.read_bytes())
    folder = variants_folder(store.root, digest)
    folder.mkdir(parents=True)
    copy = write_tiny_gguf(folder / "m.q8_0.gguf", seed=1)
    record = VariantRecord(
        format="q8_0",
        file=copy.name,
        size_bytes=copy.stat().st_size,
        sha256=sha256(copy.read_bytes()),
        prefill_tokens_per_s=200.0,
        decode_tokens_per_s=20.0,
        speedup=2.0,
        decode_speedup=1.0,
        kl_mean=0.001,
        same_top1=0.99,
        passed=True,
        reason="good enough",
    )
    marker = Marker(
        original_name="one",
        original_sha256=digest,
        original_weights="F32",
        original_prefill_tokens_per_s=100.0,
        original_decode_tokens_per_s=20.0,
        processor="p",
        build="b",
        n_threads=1,
        n_tokens=10,
        use_extra_bufts=True,
        max_kl_mean=0.05,
        min_same_top1=0.85,
        variants=(record,),
        chosen="q8_0",
    )
    write_marker(store.root, marker.model_copy(update=changes))
    return copy


def test_copy_stands_in_for_the_original(pulled: ModelStore, tiny_gguf: Path) -> None:
    copy = optimise(pulled, tiny_gguf)
    found = resolve("one", role="llm", store=pulled)
    assert (found.path, found.variant) == (copy, "q8_0")
    assert found.sha256 == sha256(copy.read_bytes())
    assert found.original_sha256 == sha256(tiny_gguf.read_bytes())
    assert resolve("one", role="llm", variant="optimized", store=pulled).path == copy
    original = resolve("one", role="llm", variant="original", store=pulled)
    assert original.path == pulled.path("one")


def test_copy_belongs_to_the_content_not_the_name(
    pulled: ModelStore, tiny_gguf: Path, tmp_path: Path
) -> None:
    copy = optimise(pulled, tiny_gguf)
    same = shutil.copy(tiny_gguf, tmp_path / "same.gguf")
    assert resolve(same, role="llm", store=pulled).path == copy
    other = write_tiny_gguf(tmp_path / "other.gguf", seed=9)
    assert resolve(other, role="llm", store=pulled).path == other


def test_no_copy_was_good_enough(pulled: ModelStore, tiny_gguf: Path) -> None:
    optimise(pulled, tiny_gguf, chosen=None)
    assert resolve("one", role="llm", store=pulled).variant == "original"
    with pytest.raises(ModelNotFound, match="no optimised copy"):
        resolve("one", role="llm", variant="optimized", store=pulled)


def damage_marker(copy: Path) -> None:
    (copy.parent / "optimized.json").write_text('{"version": 1')


def cut_copy(copy: Path) -> None:
    copy.write_bytes(copy.read_bytes()[:-100])


def flip_copy(copy: Path) -> None:
    copy.write_bytes(copy.read_bytes()[:-1] + b"\x01")


def empty_header(copy: Path) -> None:
    copy.write_bytes(bytes(copy.stat().st_size))


@pytest.mark.parametrize(
    "damage", [damage_marker, cut_copy, flip_copy, empty_header, lambda copy: copy.unlink()]
)
def test_damaged_copy_is_passed_over_and_said(
    pulled: ModelStore, tiny_gguf: Path, damage: Any, caplog: pytest.LogCaptureFixture
) -> None:
    damage(optimise(pulled, tiny_gguf))
    found = resolve("one", role="llm", store=pulled)
    assert found.path == pulled.path("one")
    assert found.variant == "original"
    assert len(found.notes) == 1
    assert "is used instead" in found.notes[0]
    assert "models optimize" in found.notes[0]
    assert found.notes[0] in caplog.text
    with pytest.raises(ModelFileError):
        resolve("one", role="llm", variant="optimized", store=pulled)


def test_marker_of_another_model_is_refused(pulled: ModelStore, tiny_gguf: Path) -> None:
    copy = optimise(pulled, tiny_gguf)
    marker = copy.parent / "optimized.json"
    text = marker.read_text().replace(sha256(tiny_gguf.read_bytes()), "0" * 64)
    marker.write_text(text)
    assert "another model" in resolve("one", role="llm", store=pulled).notes[0]


def test_marker_cannot_point_outside(pulled: ModelStore, tiny_gguf: Path) -> None:
    copy = optimise(pulled, tiny_gguf)
    marker = copy.parent / "optimized.json"
    marker.write_text(marker.read_text().replace('"m.q8_0.gguf"', '"../../../etc/passwd"'))
    assert resolve("one", role="llm", store=pulled).variant == "original"
