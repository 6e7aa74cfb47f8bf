"""Errors that stop a pipeline, in the terms of the pipeline file."""

from __future__ import annotations

from typing import Final


class PipelineError(Exception):
    """The message says what is wrong, `hint` what to do about it, `retry` whether running again unchanged can help."""

    def __init__(self, message: str, *, hint: str = "", where: str = "", retry: bool = False) -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.hint: Final = hint
        self.where: Final = where
        self.retry: Final = retry


class SpecError(PipelineError):
    """The pipeline file cannot be accepted; `where` is its name and, if known, the line."""


class NoSparkError(PipelineError):
    """Raised where Spark is first needed; the hint installs what the extra `spark` does."""

    def __init__(self) -> None:
        super().__init__("pyspark is not installed", hint='pip install "pyspark>=4.0,<4.1" pyarrow')
