from __future__ import annotations

from pathlib import Path

from tools.build_llama import cpu_flags, isa_options

XEON = frozenset(
    [
        "sse4_2",
        "avx",
        "avx2",
        "bmi2",
        "fma",
        "f16c",
        "avx512f",
        "avx512cd",
        "avx512bw",
        "avx512dq",
        "avx512vl",
        "avx512_vnni",
        "amx_tile",
        "amx_int8",
        "amx_bf16",
    ]
)


def test_amx_is_never_asked_for() -> None:
    options = isa_options("x86_64", XEON)
    assert not any("AMX" in option for option in options)
    assert "-DGGML_NATIVE=OFF" in options


def test_vector_extensions_of_the_processor_are_named() -> None:
    options = isa_options("x86_64", XEON)
    assert "-DGGML_AVX512=ON" in options
    assert "-DGGML_AVX512_VNNI=ON" in options
    assert "-DGGML_AVX512_BF16=OFF" in options


def test_half_an_avx512_is_no_avx512() -> None:
    options = isa_options("x86_64", XEON - {"avx512dq"})
    assert "-DGGML_AVX512=OFF" in options


def test_arm_builds_natively() -> None:
    assert isa_options("aarch64", frozenset()) == ["-DGGML_NATIVE=ON"]


def test_flags_are_read_from_cpuinfo(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nflags\t\t: fpu avx2 fma\nprocessor\t: 1\nflags\t: fpu\n")
    assert cpu_flags(cpuinfo) == {"fpu", "avx2", "fma"}
    assert cpu_flags(tmp_path / "absent") == frozenset()
