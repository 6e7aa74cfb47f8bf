"""The declaration of a pipeline: typed values read from a TOML file, without Spark."""

from __future__ import annotations

from ixion.pipelines.spec.load import load_spec, read_spec
from ixion.pipelines.spec.pipeline import PipelineSpec

__all__ = ["PipelineSpec", "load_spec", "read_spec"]
