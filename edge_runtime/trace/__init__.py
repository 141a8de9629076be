"""Per-stage timing: always on, a few hundred nanoseconds a span."""

from edge_runtime.trace.recorder import Recorder, Span, current, recording

__all__ = ["Recorder", "Span", "current", "recording"]
