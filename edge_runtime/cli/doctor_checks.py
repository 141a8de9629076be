"""What `edge-run doctor` looks at. Native libraries may crash, so children try them."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from edge_runtime import __version__, resources
from edge_runtime.errors import EdgeRuntimeError

_LOW_MEMORY_BYTES = 1 << 30
_LOW_DISK_BYTES = 1 << 30
_CHILD_TIMEOUT_S = 60.0
_FLAGS_THAT_MATTER = (
    *("avx2", "fma", "f16c", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8"),
    *("asimddp", "i8mm", "sve", "fphp"),
)
_PACKAGES = ("rapidocr", "pypdfium2", "pillow", "llguidance", "numpy", "pydantic", "rich")


class State(StrEnum):
    """`fail` means that the default job cannot work; `warn` that something else does not."""

    OK = "ok"
    NOTE = "note"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """One finding and, if something is to be mended, the command that does it."""

    name: str
    state: State
    detail: str
    fix: str | None = None
    facts: dict[str, Any] = field(default_factory=dict[str, Any])


def check_python() -> Check:
    """Interpreter and platform."""
    where = "virtual environment" if sys.prefix != sys.base_prefix else "no virtual environment"
    detail = f"{platform.python_version()} on {platform.system()} {platform.machine()}, {where}"
    facts = {"executable": sys.executable, "edge_runtime": __version__}
    return Check("python", State.OK, detail, facts=facts)


def check_processor() -> Check:
    """Cores and the instructions that the kernels use."""
    from edge_runtime.device.processor import n_compute_threads, n_usable_cpus

    name, flags = _processor_facts()
    known = [flag for flag in _FLAGS_THAT_MATTER if flag in flags]
    facts = {"n_cpus": n_usable_cpus(), "n_threads": n_compute_threads(), "flags": known}
    detail = f"{name}, {facts['n_cpus']} usable processors, {' '.join(known) or 'no known flags'}"
    return Check("processor", State.OK, detail, facts=facts)


def _processor_facts() -> tuple[str, set[str]]:
    name, flags = platform.processor() or platform.machine(), set[str]()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() in {"model name", "Model"}:
                name = value.strip()
            elif key.strip() in {"flags", "Features"}:
                flags.update(value.split())
    return name, flags


def check_memory() -> Check:
    """Memory that can still be taken."""
    from edge_runtime.device.processor import available_memory_bytes

    free = available_memory_bytes()
    detail = f"{free / 2**30:.1f} GB available"
    if free < _LOW_MEMORY_BYTES:
        return Check("memory", State.WARN, detail, "close other programs, or use --ctx 1024")
    return Check("memory", State.OK, detail, facts={"available_bytes": free})


def check_folder(name: str, folder: Path, variable: str) -> Check:
    """Whether a folder of ours can be written to, and how much room there is."""
    probe = folder / f".doctor-{secrets.token_hex(4)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"x")
        probe.unlink()
        free = shutil.disk_usage(folder).free
    except OSError as err:
        fix = f"export {variable}=FOLDER that can be written to"
        return Check(name, State.WARN, f"{folder}: {err.strerror or err}", fix)
    detail = f"{folder}, {free / 2**30:.1f} GB free"
    facts = {"path": str(folder), "free_bytes": free}
    if free < _LOW_DISK_BYTES:
        return Check(name, State.WARN, detail, f"make room, or set {variable}", facts)
    return Check(name, State.OK, detail, facts=facts)


def check_packages() -> Iterator[Check]:
    """Packages that the default job needs, apart from the native engines."""
    versions: dict[str, str] = {}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            yield Check(name, State.FAIL, "not installed", f"pip install {name}")
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    yield Check("packages", State.OK, listed, facts=dict(versions))


_LLAMA_CODE = """
import json
from edge_runtime.llm.llama_cpp_build import current_build
b = current_build()
print(json.dumps({"version": b.binding_version, "library": b.library_version,
                  "system_info": b.system_info, "has_amx": b.has_amx, "has_gpu": b.has_gpu}))
"""


def check_llama_cpp() -> Check:
    """The build of llama-cpp-python: does it load, and what is in it."""
    found = ask_child(_LLAMA_CODE)
    if isinstance(found, str):
        fix = "pip install --force-reinstall 'llama-cpp-python>=0.3.36,<0.4'"
        return Check("llama-cpp-python", State.FAIL, found, fix)
    kernels = [part.strip() for part in str(found["system_info"]).split("|")]
    on = [k.split(" = ")[0].split(": ")[-1] for k in kernels if k.endswith("= 1")]
    gpu = "GPU offload" if found["has_gpu"] else "CPU only"
    detail = f"{found['version']}, {gpu}, built with {' '.join(on)}"
    return Check("llama-cpp-python", State.OK, detail, facts=found)


def check_amx(model: Path, weight_type: str) -> Check | None:
    """Whether a build with AMX survives here; None when there is nothing to find out."""
    from edge_runtime.llm.llama_cpp_build import amx_verdict, current_build

    build = current_build()
    if not build.has_amx:
        return None
    verdict = amx_verdict(build, model, weight_type)
    if verdict.is_safe:
        return Check("AMX kernels", State.OK, verdict.reason)
    detail = f"{verdict.reason}; models are loaded without these kernels"
    return Check("AMX kernels", State.NOTE, detail, "build without AMX: make demo, see README")


_ONNX_CODE = """
import json, onnxruntime
print(json.dumps({"version": onnxruntime.__version__,
                  "providers": onnxruntime.get_available_providers()}))
"""


def check_onnxruntime() -> Check:
    """ONNX Runtime and where it can run."""
    found = ask_child(_ONNX_CODE)
    if isinstance(found, str):
        return Check("onnxruntime", State.FAIL, found, "pip install 'onnxruntime>=1.32,<2'")
    detail = f"{found['version']}, {', '.join(found['providers'])}"
    return Check("onnxruntime", State.OK, detail, facts=found)


def check_models() -> Iterator[Check]:
    """The default models: there, and with the bytes that the catalogue promises."""
    from edge_runtime.models.catalogue import load_catalogue
    from edge_runtime.models.store import ModelStore

    store = ModelStore()
    for entry in load_catalogue().defaults():
        name = f"model {entry.name}"
        try:
            store.verify(entry.name)
        except EdgeRuntimeError as err:
            fix = f"edge-run models pull {entry.name}"
            yield Check(name, State.FAIL, err.message, fix)
        else:
            yield Check(name, State.OK, f"{entry.role}, complete, {entry.licence}")


def check_extras() -> Iterator[Check]:
    """Optional parts."""
    extras = (
        ("paddleocr", "paddleocr", "the second text recognition engine"),
        ("pillow-heif", "pillow_heif", "HEIC pictures of phones"),
    )
    for package, module, what in extras:
        if importlib.util.find_spec(module) is not None:
            yield Check(f"extra {package}", State.OK, what)
        else:
            fix = f"pip install {package}"
            yield Check(f"extra {package}", State.NOTE, f"not installed: {what}", fix)


def check_prefix_store() -> Check:
    """Prepared prompts on disk."""
    from edge_runtime.kv.prefix_store import PrefixStore, default_root

    root = default_root()
    if not root.is_dir():
        return Check("prefix store", State.OK, "empty; the first run fills it")
    stats = PrefixStore(root).stats()
    detail = f"{stats.n_disk_blocks} blocks, {stats.disk_bytes / 2**20:.1f} MB in {root}"
    if stats.disk_problem:
        fix = "edge-run cache clear"
        return Check("prefix store", State.WARN, f"{detail}: {stats.disk_problem}", fix)
    return Check("prefix store", State.OK, detail)


def check_hub() -> Check:
    """Where models would be fetched from."""
    endpoint = os.environ.get("HF_ENDPOINT")
    if os.environ.get("HF_HUB_OFFLINE", "0") not in {"", "0"}:
        return Check("model hub", State.NOTE, "switched off by HF_HUB_OFFLINE")
    detail = f"HF_ENDPOINT={endpoint}" if endpoint else "default address; HF_ENDPOINT is not set"
    return Check("model hub", State.OK, f"{detail}; only used by `edge-run models pull`")


def check_default_job(draw: Callable[[Path], str], folder: Path) -> Check:
    """Read a drawn page with the default pipeline, as `edge-run ocr` would.

    Args:
        draw: Writes a picture and returns the text that has to be found on it.
        folder: Where the picture may be put.
    """
    picture = folder / "doctor.png"
    wanted = draw(picture)
    command = [sys.executable, "-m", "edge_runtime", "ocr", str(picture), "--json", "-q"]
    command += ["--schema", '{"total": "amount"}']
    done = _run(command, timeout_s=5 * _CHILD_TIMEOUT_S)
    if isinstance(done, str):
        return Check("default job", State.FAIL, done, "edge-run ocr FILE --debug")
    try:
        result = json.loads(done.stdout)
    except ValueError:
        return Check(
            "default job", State.FAIL, _last_line(done.stderr), "edge-run ocr FILE --debug"
        )
    if result.get("error"):
        error = result["error"]
        return Check("default job", State.FAIL, str(error["message"]), error.get("hint"))
    text = " ".join(line["text"] for page in result["pages"] for line in page["lines"])
    if wanted not in text:
        fix = "edge-run models verify"
        return Check("default job", State.FAIL, f"a drawn page was read as {text!r}", fix)
    total_ms = result["timing"]["total_ms"]
    return Check("default job", State.OK, f"a drawn page was read in {total_ms:.0f} ms")


def ask_child(code: str) -> dict[str, Any] | str:
    """Run Python code that prints a JSON object; the object, or what went wrong."""
    done = _run([sys.executable, "-c", code], timeout_s=_CHILD_TIMEOUT_S)
    if isinstance(done, str):
        return done
    if done.returncode != 0:
        return _last_line(done.stderr)
    try:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    except (ValueError, IndexError):
        return f"unexpected output: {done.stdout[-200:]!r}"


def _run(command: list[str], *, timeout_s: float) -> subprocess.CompletedProcess[str] | str:
    try:
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {timeout_s:.0f} s"
    except OSError as err:
        return f"cannot be started: {err}"
    if done.returncode < 0:
        number = -done.returncode
        known = number in set(signal.Signals)
        return f"crashed with {signal.Signals(number).name if known else number}"
    return done


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it ended without a word"


def our_folders() -> Iterator[Check]:
    """The folders that are written to."""
    yield check_folder("models folder", resources.models_dir(), "EDGE_RUNTIME_MODELS")
    yield check_folder("cache folder", resources.cache_dir(), "EDGE_RUNTIME_CACHE")
