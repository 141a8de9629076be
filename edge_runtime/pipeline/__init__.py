"""The document pipeline: load once, call many times, iterate over events.

from edge_runtime import Pipeline, PipelineOptions

with Pipeline(PipelineOptions(schema="receipt")) as pipeline:
    print(pipeline.run("receipt.png").data)
"""

from edge_runtime.pipeline.document import Pipeline
from edge_runtime.pipeline.options import PipelineOptions

__all__ = ["Pipeline", "PipelineOptions"]
