"""Build llama-cpp-python for this machine as a wheel, small and without AMX.

The package is a source distribution. Its default build compiles for the machine it runs on, which
on recent Xeons includes AMX code that segfaults on some virtual machines, and builds far more
than a Python binding needs. This script builds it with the processor's own vector extensions
spelled out, AMX left out, and without llama.cpp's `common` library and the multimodal part.

Uses only the standard library. The wheel is kept in `--out`, named after the flags it was built
with, and is not built again while those stay the same.

    python tools/build_llama.py --out .cache/llama --print-path
    python tools/build_llama.py --out .cache/llama -- -DGGML_CUDA=ON     # more CMake options
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DEFAULT_REQUIREMENT = "llama-cpp-python==0.3.36"

# /proc/cpuinfo flag(s) -> CMake option of ggml
X86_OPTIONS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("sse4_2",), "GGML_SSE42"),
    (("avx",), "GGML_AVX"),
    (("avx2",), "GGML_AVX2"),
    (("bmi2",), "GGML_BMI2"),
    (("fma",), "GGML_FMA"),
    (("f16c",), "GGML_F16C"),
    (("avx_vnni",), "GGML_AVX_VNNI"),
    (("avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"), "GGML_AVX512"),
    (("avx512_vbmi", "avx512vbmi"), "GGML_AVX512_VBMI"),
    (("avx512_vnni",), "GGML_AVX512_VNNI"),
    (("avx512_bf16",), "GGML_AVX512_BF16"),
)

# llama.cpp's `common` library cannot be switched off by an argument, since the binding's own
# CMakeLists sets the option; a file included by `project(llama.cpp)` can.
CMAKE_INCLUDE = 'set(LLAMA_BUILD_COMMON OFF CACHE BOOL "" FORCE)\n'


def cpu_flags(cpuinfo: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """The x86 feature flags of the first processor; empty where there is no such file."""
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "flags":
            return frozenset(value.split())
    return frozenset()


def isa_options(machine: str, flags: frozenset[str]) -> list[str]:
    """CMake options for the instruction set of this machine.

    On x86 every extension is named, so that AMX (which `GGML_NATIVE` would bring) stays out.
    Elsewhere there is no such trap and the native build is the fast one.
    """
    if machine.lower() not in {"x86_64", "amd64"}:
        return ["-DGGML_NATIVE=ON"]
    if not flags:  # no /proc/cpuinfo (macOS on Intel): the compiler knows best
        return ["-DGGML_NATIVE=ON"]
    options = ["-DGGML_NATIVE=OFF"]
    for names, option in X86_OPTIONS:
        present = any(n in flags for n in names) if "VBMI" in option else flags.issuperset(names)
        options.append(f"-D{option}={'ON' if present else 'OFF'}")
    return options


def build(requirement: str, out: Path, extra: list[str], n_jobs: int) -> Path:
    """Build (or find) the wheel and return its path."""
    options = [*isa_options(platform.machine(), cpu_flags()), "-DLLAVA_BUILD=OFF", *extra]
    tag = f"{requirement}|{'|'.join(options)}|{sys.version_info[:2]}|{platform.machine()}"
    folder = out / hashlib.sha256(tag.encode()).hexdigest()[:16]
    for wheel in folder.glob("llama_cpp_python-*.whl"):
        return wheel
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as scratch:
        include = Path(scratch) / "without_common.cmake"
        include.write_text(CMAKE_INCLUDE, encoding="utf-8")
        env = dict(os.environ)
        inherited = env.get("CMAKE_ARGS", "")
        env["CMAKE_ARGS"] = " ".join(
            [*options, f"-DCMAKE_PROJECT_llama.cpp_INCLUDE={include.resolve()}", inherited]
        ).strip()
        env.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(n_jobs))
        built = Path(scratch) / "built"
        print(f"Building {requirement} with {env['CMAKE_ARGS']}", file=sys.stderr, flush=True)
        # pip's wheel cache knows nothing of CMAKE_ARGS: a wheel from there could be any build.
        command = [sys.executable, "-m", "pip", "wheel", "--no-cache-dir", "--no-deps"]
        command += ["--no-binary", "llama-cpp-python", "-w", str(built), requirement]
        subprocess.run(command, check=True, env=env, stdout=sys.stderr)
        wheel = next(built.glob("llama_cpp_python-*.whl"))
        folder.mkdir(parents=True, exist_ok=True)
        partial = folder / (wheel.name + ".partial")
        shutil.copyfile(wheel, partial)
        target = folder / wheel.name
        partial.replace(target)
    return target


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder that keeps the wheel")
    parser.add_argument("--requirement", default=DEFAULT_REQUIREMENT)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--print-path", action="store_true", help="print the wheel's path")
    parser.add_argument("--print-options", action="store_true", help="print CMake options and stop")
    parser.add_argument("extra", nargs="*", help="more CMake options, after --")
    args = parser.parse_args(argv)
    if args.print_options:
        print(" ".join([*isa_options(platform.machine(), cpu_flags()), "-DLLAVA_BUILD=OFF"]))
        return 0
    try:
        wheel = build(args.requirement, args.out, args.extra, args.jobs)
    except subprocess.CalledProcessError as err:
        print(
            f"The build of {args.requirement} failed (exit code {err.returncode}). It needs a C++ "
            "compiler (Debian: apt install build-essential) and access to the package registry.",
            file=sys.stderr,
        )
        return 1
    if args.print_path:
        print(wheel)
    return 0


if __name__ == "__main__":
    sys.exit(main())
