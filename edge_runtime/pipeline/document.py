"""The document pipeline: load once, call many times."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator
from types import TracebackType
from typing import Any, Self

from edge_runtime.errors import StageError, UsageError
from edge_runtime.events import Event, Result
from edge_runtime.pipeline.components import Components, load_components
from edge_runtime.pipeline.document_run import DocumentRun
from edge_runtime.pipeline.options import PipelineOptions
from edge_runtime.pipeline.run_state import RunState
from edge_runtime.trace import Recorder, recording
from edge_runtime.values import RunResult


class Pipeline:
    """Documents into lines of text and the fields of a schema.

        with Pipeline(PipelineOptions(schema="receipt")) as pipeline:
            for event in pipeline.events("receipt.png"):
                print(event)

    Making one is cheap; models are loaded by `warm_up`, or by the first document. One document is
    read at a time: a second thread waits for its turn.
    """

    def __init__(self, options: PipelineOptions | None = None) -> None:
        self.options = options or PipelineOptions()
        self._components: Components | None = None
        self._recorder: Recorder | None = None
        self._turn = threading.Lock()
        self._owner: int | None = None
        self._is_closed = False

    @property
    def recorder(self) -> Recorder | None:
        """Spans and marks of the last run; None before the first."""
        return self._recorder

    def warm_up(self) -> None:
        """Load every model and compute or restore the prompt's fixed beginning; once.

        Raises:
            MissingError: a model or package is not there; the hint says how to get it.
            SchemaError: the schema cannot be honoured.
        """
        with self._my_turn():
            self._load()

    def run(self, source: Any) -> RunResult:
        """Read one document to the end.

        Args:
            source: Path, `-` for standard input, bytes, Pillow image or numpy array.

        Raises:
            EdgeRuntimeError: the document cannot be read; see `edge_runtime.errors`.
        """
        result: RunResult | None = None
        for event in self.events(source):
            if isinstance(event, Result):
                result = event.result
        if result is None:
            raise StageError("The pipeline ended without a result.")
        return result

    def events(self, source: Any) -> Generator[Event]:
        """Read one document and yield what becomes known, a `Result` at last.

        Work goes on in a thread while the caller handles events; leaving the loop early stops it.

        Raises:
            EdgeRuntimeError: as `run`, after the events that came before it.
        """
        with self._my_turn():
            components = self._load()
            recorder = Recorder()
            self._recorder = recorder
            state = RunState(recorder, deadline_s=self.options.deadline_s)
            run = DocumentRun(components, self.options, state)
            worker = threading.Thread(
                target=_work, args=(run, state, source), name="edge-document", daemon=True
            )
            worker.start()
            try:
                yield from state.events()
            finally:
                state.stop()
                worker.join()

    def close(self) -> None:
        """Free all models. May be called twice; not from inside a loop over `events`."""
        with self._my_turn(closing=True):
            self._is_closed = True
            if self._components is not None:
                self._components.close()
                self._components = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    def _load(self) -> Components:
        if self._components is None:
            components = load_components(self.options)
            try:
                components.prepare_prefix()
            except BaseException:
                components.close()
                raise
            self._components = components
        return self._components

    @contextlib.contextmanager
    def _my_turn(self, *, closing: bool = False) -> Generator[None]:
        me = threading.get_ident()
        if self._owner == me:
            raise UsageError(
                "This pipeline is in the middle of a document in this thread.",
                hint="finish or leave the loop over events() first",
            )
        with self._turn:
            if self._is_closed and not closing:
                raise UsageError("This pipeline is closed.", hint="make a new Pipeline")
            self._owner = me
            try:
                yield
            finally:
                self._owner = None


def _work(run: DocumentRun, state: RunState, source: Any) -> None:
    with recording(state.recorder):
        try:
            run.read(source)
        except BaseException as err:  # noqa: BLE001 - handed to the caller's thread, raised there
            state.finish(err)
        else:
            state.finish()
