"""A loopback server that can misbehave, wheels in a folder, and catalogues of one model."""

from __future__ import annotations

import hashlib
import threading
import zipfile
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from edge_runtime.models.catalogue import Catalogue, Entry
from edge_runtime.models.http_download import RetryPolicy

NO_WAIT = RetryPolicy(n_attempts=3, first_wait_s=0.0, max_wait_s=0.0)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass
class Served:
    """One address. `cuts` are lengths after which answers break off, one per request."""

    content: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    location: str | None = None
    does_ranges: bool = True
    cuts: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)  # answered first, one per request


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]


class FakeServer:
    def __init__(self) -> None:
        self.files: dict[str, Served] = {}
        self.requests: list[Request] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                outer.answer(self)

            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, *_: Any) -> None:
                return None

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.port = self.http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.other_url = f"http://localhost:{self.port}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()

    def add(self, path: str, content: bytes = b"", **options: Any) -> str:
        self.files[path] = Served(content, **options)
        return self.url + path

    def n_gets(self, path: str) -> int:
        return sum(r.method == "GET" and r.path == path for r in self.requests)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        headers = {key.lower(): value for key, value in handler.headers.items()}
        self.requests.append(Request(handler.command, handler.path, headers))
        handler.close_connection = True
        served = self.files.get(handler.path, Served(status=404))
        status = served.statuses.pop(0) if served.statuses else served.status
        start, content = 0, served.content
        if status == 200 and served.location:
            status = 302
        wanted = headers.get("range", "")
        if status == 200 and served.does_ranges and wanted.startswith("bytes="):
            start = int(wanted[6:].rstrip("-"))
            status = 206 if start < len(content) else 416
        handler.send_response(status)
        for key, value in served.headers.items():
            handler.send_header(key, value)
        if served.location:
            handler.send_header("Location", served.location)
        if status == 206:
            last = len(content) - 1
            handler.send_header("Content-Range", f"bytes {start}-{last}/{len(content)}")
        elif status == 416:
            handler.send_header("Content-Range", f"bytes */{len(content)}")
        body = content[start:] if status in {200, 206} else b""
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if handler.command == "GET":
            cut = served.cuts.pop(0) if served.cuts else len(body)
            handler.wfile.write(body[:cut])


def write_wheel(
    folder: Path, package: str, members: dict[str, bytes], *, version: str = "1.0"
) -> Path:
    stem = f"{package.replace('-', '_')}-{version}"
    path = folder / f"{stem}-py3-none-any.whl"
    info = f"{stem}.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        metadata = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
        archive.writestr(f"{info}/METADATA", metadata + "Requires-Python: <3\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def part(package: str, member: str, content: bytes, *, version: str = "1.0") -> dict[str, Any]:
    return {
        "package": package,
        "version": version,
        "member": member,
        "size_bytes": len(content),
    }


def file(
    source: dict[str, Any],
    content: bytes | None = None,
    *,
    key: str = "model",
    name: str = "m.gguf",
    kind: str = "gguf",
) -> dict[str, Any]:
    known = {} if content is None else {"size_bytes": len(content), "sha256": sha256(content)}
    return {"key": key, "name": name, "format": kind, "source": source, **known}


def entry(*files: dict[str, Any], name: str = "one", role: str = "llm", **more: Any) -> Entry:
    return Entry.model_validate(
        {
            "name": name,
            "role": role,
            "title": "A model for tests",
            "licence": "Apache-2.0",
            "licence_url": "https://example.org/licence",
            "files": list(files),
            **more,
        }
    )


def catalogue(*entries: Entry) -> Catalogue:
    return Catalogue({e.name: e for e in entries})
