"""`edge-run ocr`: pictures and PDFs in, grounded data out."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from edge_runtime.cli.ocr_arguments import EXAMPLES, add_arguments

if TYPE_CHECKING:
    from edge_runtime.cli.ocr_inputs import OcrInput
    from edge_runtime.cli.ocr_run import Outcome, RunsDocuments
    from edge_runtime.cli.ocr_sinks import Sink
    from edge_runtime.cli.output.formats import Format
    from edge_runtime.errors import EdgeRuntimeError
    from edge_runtime.pipeline import Pipeline, PipelineOptions
    from edge_runtime.values import RunResult


def add_parser(subparsers: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "ocr",
        help="read documents and extract their data",
        description="Read pictures and PDFs and extract their data, each value with its place.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Read all inputs; 0 when every one has a result."""
    from edge_runtime.cli import ocr_inputs

    batch = ocr_inputs.is_batch(args.inputs)
    form = _choose_format(args, is_batch=batch)
    documents = ocr_inputs.collect(args.inputs)
    _check_places(args, form, is_batch=batch)
    if not batch:
        places = {"-o": args.output, "--overlay": args.overlay, "--trace": args.trace}
        ocr_inputs.check_distinct(documents, places)
    with open_pipeline(_options(args)) as pipeline:
        return _read_all(pipeline, documents, form, args, is_batch=batch)


def open_pipeline(options: PipelineOptions) -> Pipeline:
    """The pipeline that reads the documents."""
    from edge_runtime.pipeline import Pipeline

    return Pipeline(options)


def _options(args: argparse.Namespace) -> PipelineOptions:
    from edge_runtime.pipeline import PipelineOptions

    given: dict[str, Any] = {
        "schema": args.schema,
        "model": args.model,
        "ocr_model": args.ocr_model,
        "engine": args.engine,
        "strategy": args.strategy,
        "n_threads": args.threads,
        "n_ctx": args.ctx,
        "password": args.password,
        "pages": args.pages,
        "dpi": args.dpi,
        "text_layer": args.text_layer,
        "rotate": int(args.rotate) if args.rotate and args.rotate != "auto" else args.rotate,
        "min_confidence": args.min_confidence,
        "locale": args.locale,
        "deadline_s": args.timeout,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    if args.ocr_only:
        chosen["schema"] = None
    if args.ocr_only or args.no_model:
        chosen["model"] = None
    if args.no_cache:
        chosen["prefix_cache"] = False
    if args.recipe is not None:
        return PipelineOptions.from_recipe(args.recipe, **chosen)
    return PipelineOptions(**chosen)


def _choose_format(args: argparse.Namespace, *, is_batch: bool) -> Format:
    from edge_runtime.cli.output import formats
    from edge_runtime.errors import UsageError

    if args.ocr_only and (args.schema or args.model or args.strategy):
        raise UsageError(
            "--ocr-only extracts nothing, so --schema, --model and --strategy do not go with it."
        )
    if args.no_model and (args.model or args.strategy == "generate"):
        raise UsageError("--no-model contradicts --model and --strategy generate.")
    name = formats.choose_name(
        given=args.format, as_json=args.json, output=args.output, is_batch=is_batch
    )
    return formats.make_format(
        name,
        text_only=args.ocr_only,
        wide_paths=_wide_paths(args) if name == "csv-wide" else None,
        terminal=args.output is None and formats.stdout_is_terminal(),
    )


def _wide_paths(args: argparse.Namespace) -> list[str] | None:
    from edge_runtime.extract.schema_loading import load_schema

    schema = load_schema(args.schema or "auto")
    if schema.is_open:
        return None
    return [*(field.path for field in schema.fields), *(array.path for array in schema.arrays)]


def _check_places(args: argparse.Namespace, form: Format, *, is_batch: bool) -> None:
    """Refuse places that cannot work before models are loaded."""
    from edge_runtime.cli.output.formats import is_folder
    from edge_runtime.errors import UsageError

    to_folder = args.output is not None and is_folder(args.output)
    if args.resume and not to_folder and (args.output is None or form.name != "jsonl"):
        raise UsageError(
            "--resume needs the results of the earlier run in a JSON Lines file or a folder.",
            hint="-o results.jsonl, or -o results/",
        )
    for option, path in (("--overlay", args.overlay), ("--trace", args.trace)):
        if path is not None and is_batch and path.is_file():
            raise UsageError(f"{option} needs a folder for several inputs, {path} is a file.")
    if args.output is None or to_folder or not is_batch:
        return
    exists = args.output.is_file() and args.output.stat().st_size > 0
    if exists and not (args.resume or args.overwrite):
        raise UsageError(
            f"{args.output} already holds something.",
            hint="--resume to go on, --overwrite to begin again",
        )


def _open_sink(
    args: argparse.Namespace, form: Format, names: Mapping[str, str], *, is_batch: bool
) -> Sink:
    from edge_runtime.cli import ocr_sinks
    from edge_runtime.cli.output.formats import is_folder

    if args.output is None:
        return ocr_sinks.StdoutSink(form)
    if is_folder(args.output):
        return ocr_sinks.FolderSink(form, args.output, names, resume=args.resume)
    if not is_batch and not args.resume:
        return ocr_sinks.OneFileSink(form, args.output)
    if args.overwrite:
        args.output.unlink(missing_ok=True)
    return ocr_sinks.GrowingFileSink(form, args.output, resume=args.resume)


def _read_all(
    pipeline: RunsDocuments,
    documents: Sequence[OcrInput],
    form: Format,
    args: argparse.Namespace,
    *,
    is_batch: bool,
) -> int:
    from edge_runtime.cli import error_report, ocr_inputs
    from edge_runtime.cli.ocr_progress import Progress
    from edge_runtime.cli.ocr_run import run_one
    from edge_runtime.errors import EdgeRuntimeError

    names = ocr_inputs.file_names([document.label for document in documents])
    told = is_batch and not args.quiet and not _shows_results(args)
    progress = Progress(
        len(documents), per_document=told, live=False if args.quiet or args.verbose else None
    )
    n_failed = 0
    code = 0
    said: set[str] = set()
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(progress.clear)
        progress.note("loading models")
        pipeline.warm_up()
        sink = _open_sink(args, form, names, is_batch=is_batch)
        cleanup.callback(sink.close)
        todo = [document for document in documents if document.label not in sink.finished]
        n_failed += _tell_skipped(documents, sink, progress, quiet=args.quiet)
        for document in todo:
            progress.start(document.label)
            outcome = run_one(pipeline, document, watch=progress.watch)
            try:
                _write_extras(pipeline, document, outcome.result, args, names, is_batch=is_batch)
            except EdgeRuntimeError as err:
                outcome = _without_extras(outcome, err)
                error_report.print_error(err.to_dict())
                n_failed += not outcome.is_failed
                code = err.exit_code
            progress.done(outcome)
            sink.put(document.label, outcome.result)
            if not args.quiet:
                _tell_degraded(outcome.result, said)
            if outcome.is_failed:
                n_failed += 1
                code = outcome.exit_code
                if outcome.result.error and not told:
                    error_report.print_error(outcome.result.error)
                if args.fail_fast:
                    return code
    if not is_batch:
        return code
    if n_failed:
        sys.stderr.write(f"{n_failed} of {len(documents)} documents failed\n")
    return 1 if n_failed else 0


def _tell_degraded(result: RunResult, said: set[str]) -> None:
    """What was done less well, once per reason: not every format has a place for it."""
    for reason in result.degraded:
        if reason not in said:
            said.add(reason)
            sys.stderr.write(f"degraded: {reason}\n")


def _shows_results(args: argparse.Namespace) -> bool:
    """Whether results themselves appear in the terminal, which makes progress lines noise."""
    return args.output is None and sys.stdout.isatty() and sys.stderr.isatty()


def _tell_skipped(documents: Sequence[OcrInput], sink: Sink, progress: Any, *, quiet: bool) -> int:
    skipped = [sink.finished[d.label] for d in documents if d.label in sink.finished]
    n_failed = skipped.count("failed")
    progress.skipped(len(skipped))
    if skipped and not quiet:
        more = f", {n_failed} of them failed" if n_failed else ""
        sys.stderr.write(f"{len(skipped)} documents have a result already{more}\n")
    return n_failed


def _without_extras(outcome: Outcome, err: EdgeRuntimeError) -> Outcome:
    """The outcome when its overlay or trace could not be written: the data is good, and says so."""
    from edge_runtime.values import ResultStatus

    result = outcome.result
    status = ResultStatus.DEGRADED if result.status is ResultStatus.OK else result.status
    reasons = (*result.degraded, f"Overlay or trace is missing: {err.message}")
    return replace(outcome, result=replace(result, status=status, degraded=reasons))


def _write_extras(
    pipeline: RunsDocuments,
    document: OcrInput,
    result: Any,
    args: argparse.Namespace,
    names: Mapping[str, str],
    *,
    is_batch: bool,
) -> None:
    if args.trace is not None and pipeline.recorder is not None:
        from edge_runtime.cli.output.files import write_atomically
        from edge_runtime.trace.chrome import chrome_trace_json

        path = args.trace / f"{names[document.label]}.trace.json" if is_batch else args.trace
        write_atomically(path, chrome_trace_json(pipeline.recorder))
    if args.overlay is not None and result.document.pages:
        from edge_runtime.cli.output.overlay import write_overlay

        path = args.overlay / f"{names[document.label]}.png" if is_batch else args.overlay
        options = {"password": args.password, "pages": args.pages, "dpi": args.dpi}
        given = {name: value for name, value in options.items() if value is not None}
        write_overlay(document.source, result, path, load_options=given)
