"""What Spark and Java report, in the words of whoever wrote the pipeline."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pyspark.errors import PySparkException

from ixion.config.table import meant
from ixion.pipelines.drift import FATAL
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.session import first_line

# (what is found in the report, what it means, what to do, whether running again can help)
_LOSS: Final = (
    r"KAFKA_DATA_LOSS|data may have been (?:lost|missed)|START_OFFSET_RESET|offset was changed from|are gone|"
    r"OffsetOutOfRange|UnknownTopicOrPartitionException|This server does not host this topic"
)
_KNOWN: Final = (
    (
        _LOSS,
        "records that this pipeline had not read yet are gone: a topic or partition was deleted, made anew or shrunk, "
        "or retention was faster than the pipeline",
        "nothing of this batch was written; run again for the details",
        False,
    ),
    (
        r"Python worker exited unexpectedly|EOFException.*PythonRunner|Python worker failed to connect",
        "a Python worker died",
        "run again: the batch it worked on was not written and is taken up again",
        True,
    ),
    (
        r"(?:Sasl|Ssl)AuthenticationException|Authentication failed",
        "the broker no longer lets this pipeline in",
        "has the password or the certificate been changed?",
        False,
    ),
    (
        r"TopicAuthorizationException|Not authorized to access",
        "the broker does not allow this",
        "whoever looks after it grants rights: read and describe for the topics, write for a topic sink",
        False,
    ),
    (
        r"Topic \S+ not present in metadata",
        "a topic that rows are sent to is not there",
        "this broker does not make topics by itself: make it first (ixion topic create)",
        False,
    ),
    (
        r"Timed? ?out.*(?:node assignment|fetch|offset)|TimeoutException|Bootstrap broker|DisconnectException",
        "the broker stopped answering",
        "run again when it is back: nothing is lost, nothing is written twice",
        True,
    ),
    (
        r"CONCURRENT_STREAM_LOG_UPDATE|multiple streaming jobs detected",
        "another run of this pipeline uses the same checkpoint",
        "only one may run at a time",
        True,
    ),
    (
        r"STATE_STORE_(?:KEY|VALUE)_SCHEMA_NOT_COMPATIBLE|STREAMING_STATEFUL_OPERATOR_NOT_MATCH",
        "the steps were changed in a way that what the checkpoint remembers no longer fits",
        "a changed window or de-duplication needs a new checkpoint",
        False,
    ),
    (
        r"DELTA_FAILED_TO_MERGE_FIELDS|DELTA_METADATA_MISMATCH|A schema mismatch detected when writing",
        "the rows no longer have the columns of the Delta table",
        'to add the new columns: [sinks.options] mergeSchema = "true"',
        False,
    ),
    (r"No space left on device", "the disk is full", "make room and run again: nothing is lost", True),
)


def is_loss(error: BaseException) -> bool:
    """Whether Spark complains of records that are not there any more."""
    return any(re.search(_LOSS, report) for report in _reports(error))


def explain(error: BaseException) -> PipelineError:
    """ERROR as a PipelineError; one that nobody has words for keeps its first line."""
    if isinstance(error, PipelineError):
        return error
    reports = list(_reports(error))
    for report in reports:
        if found := re.search(rf"{FATAL}([^\n]*)", report):
            hint = "nothing of this batch was written; mend the records' producer or the expectation"
            return PipelineError(re.sub(r" SQLSTATE: \w+$", "", found[1]), hint=hint)
    if isinstance(error, PySparkException):
        analysed = _analysed(error)
        if analysed is not None:
            return analysed
    for pattern, meaning, hint, retry in _KNOWN:
        for report in reports:
            if found := re.search(pattern, report):
                said = _line_with(report, found.start())
                return PipelineError(f"{meaning} ({said})", hint=hint, retry=retry)
    return PipelineError(f"Spark stopped: {_innermost(reports)}", hint="--verbose shows all that Spark says")


def _analysed(error: PySparkException) -> PipelineError | None:
    """Errors in what the user wrote: Spark names the condition and its parameters."""
    condition = error.getCondition() or ""
    parameters = error.getMessageParameters() or {}
    if condition.startswith(("UNRESOLVED_COLUMN", "UNRESOLVED_FIELD")):
        name = parameters.get("objectName", parameters.get("fieldName", "?")).strip("`")
        there = re.findall(r"`([^`]+)`", parameters.get("proposal", ""))
        hint = f"there are: {', '.join(there)}" if there else ""
        return PipelineError(f"there is no column {name}{meant(name, there, 0.5)}", hint=hint)
    if condition == "TABLE_OR_VIEW_NOT_FOUND":
        name = parameters.get("relationName", "?").replace("`", "")
        hint = "SQL steps read `stream`, and the tables declared as [tables.NAME]"
        return PipelineError(f"SQL: there is no table {name}", hint=hint)
    if condition.startswith("PARSE_SYNTAX_ERROR"):
        return PipelineError(f"SQL: {first_line(str(error))}", hint=_position(str(error)))
    if condition in ("UNRESOLVED_ROUTINE", "DATATYPE_MISMATCH") or condition.startswith("DATATYPE_MISMATCH"):
        return PipelineError(f"SQL: {first_line(_plain(str(error)))}")
    if condition == "PATH_NOT_FOUND":
        return PipelineError(f"there is nothing at {parameters.get('path', '?')}")
    return None


def _reports(error: BaseException) -> Iterator[str]:
    """The message of ERROR and of everything that caused it, Python's causes and Java's."""
    seen = 0
    current: BaseException | None = error
    while current is not None and seen < 20:
        yield str(current)
        seen += 1
        current = current.__cause__ or current.__context__


def _innermost(reports: list[str]) -> str:
    """The last "Caused by" says most."""
    causes = re.findall(r"Caused by: ([^\n]+)", "\n".join(reports))
    return _plain(causes[-1] if causes else first_line(reports[0]))


def _plain(text: str) -> str:
    """Without the names of queries and classes and Spark's code in front, and without the SQL state behind."""
    text = re.sub(r"^(?:.*terminated with exception: )?[: ]*", "", text)
    text = re.sub(r"^(?:(?:[a-z]\w*\.)+[A-Z][\w$]*(?:Exception|Error|Failure): )+", "", text)
    return re.sub(r"^\[[A-Z_.0-9]+\] | SQLSTATE: \w+.*$", "", text)


def _line_with(report: str, at: int) -> str:
    start = report.rfind("\n", 0, at) + 1
    end = report.find("\n", at)
    line = _plain(report[start : end if end >= 0 else len(report)].strip().removeprefix("Caused by: "))
    return line if len(line) < 200 else line[:197] + "…"


def _position(report: str) -> str:
    """The SQL with the mark that Spark puts under the mistake."""
    _, found, rest = report.partition("== SQL ==\n")
    return rest.partition("\n\nJVM")[0].rstrip() if found else ""
