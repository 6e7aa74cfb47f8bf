"""Explains errors of Spark and Java in the terms of the pipeline file."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from typing import Final

from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException

from ixion.config.table import meant
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.formats.drift import FATAL, GROWN
from ixion.pipelines.formats.registry_records import unknown_id
from ixion.pipelines.spark.short_messages import first_line, innermost, plain

_LOSS: Final = (
    r"KAFKA_DATA_LOSS|data may have been (?:lost|missed)|START_OFFSET_RESET|offset was changed from|are gone|"
    r"OffsetOutOfRange|UnknownTopicOrPartitionException|This server does not host this topic"
)
# (what is found in the report, what it means, what to do, whether running again can help); SAID is the line found.
_KNOWN: Final = (
    (
        _LOSS,
        "records that this pipeline has not read are gone: a topic or partition was deleted, created again or shrunk, "
        "or retention deleted them first",
        "nothing of this batch was written; run again for the details",
        False,
    ),
    (
        r"Python worker exited unexpectedly|EOFException.*PythonRunner|Python worker failed to connect",
        "a Python worker died",
        "run again: its batch was not written and is repeated",
        True,
    ),
    (
        r"(?:Sasl|Ssl)AuthenticationException|Authentication failed",
        "the broker no longer accepts this pipeline's credentials (SAID)",
        "has the password or the certificate been changed?",
        False,
    ),
    (
        r"TopicAuthorizationException|Not authorized to access",
        "the broker does not allow this (SAID)",
        "its administrator grants rights: read and describe for the topics, write for a topic sink",
        False,
    ),
    (
        r"Topic \S+ not present in metadata",
        "the topic of a sink does not exist (SAID)",
        "this broker does not create topics by itself: create it first (ixion topic create)",
        False,
    ),
    (
        r"iceberg\.exceptions\.(?:RESTException|ServiceFailureException|ServiceUnavailableException)|"
        r"PSQLException: (?:An I/O error|Connection to|The connection attempt|This connection|FATAL: terminating)",
        "the catalog of the table does not answer (SAID)",
        "run again when it is back: nothing is lost, nothing is written twice",
        True,
    ),
    (
        r"Invalid update timestamp \S+: before|Expected sorted (?:snapshot|previous metadata) log entries",
        "the clock shows an earlier time than the newest snapshot of an Iceberg table has (SAID)",
        "Iceberg takes no snapshot that is older than the last one by more than a minute: set the clock right or wait; "
        "nothing is lost",
        True,
    ),
    (
        r"Timed? ?out.*(?:node assignment|fetch|offset)|TimeoutException|Bootstrap broker|DisconnectException",
        "the broker stopped answering (SAID)",
        "run again when it is back: nothing is lost, nothing is written twice",
        True,
    ),
    (
        r"(?:ProtocolChanged|MetadataChanged|Concurrent(?:Append|Write|Delete\w+|Transaction))Exception|"
        r"iceberg\.exceptions\.(?:CommitFailed|CommitStateUnknown|AlreadyExists)\w*|Version \d+ already exists: |"
        r"Found (?:new )?conflicting (?:delete )?files",
        "another job changed the table at the same time (SAID)",
        "run again: the batch was not written, or is recognised, so nothing is lost and nothing is written twice",
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
        "the steps no longer fit the state in the checkpoint",
        "a changed window or de-duplication needs a new checkpoint",
        False,
    ),
    (
        r"DELTA_FAILED_TO_MERGE_FIELDS|DELTA_METADATA_MISMATCH|A schema mismatch detected when writing",
        "the rows no longer have the columns of the Delta table (SAID)",
        'to add the new columns: [sinks.options] mergeSchema = "true"',
        False,
    ),
    (
        r"CHECK constraint .* violated|(?:has a )?NOT NULL constraint|Null value appeared in non-nullable field",
        "the table does not accept a row (SAID)",
        'an expectation with the same condition, on = "result", sends such rows to the quarantine',
        False,
    ),
    (
        r"Max iterations \(\d+\) reached|StackOverflowError",
        "the records have too many fields, or their objects are nested too deeply, for Spark",
        "[format] schema can leave fields out, or take a whole object as text: details STRING",
        False,
    ),
    (
        r"without watermark",
        "a window or an aggregate needs a watermark before it, or it could never be written",
        'add a step before it: watermark = { column = "at", delay = "10 minutes" }',
        False,
    ),
    (
        r"must be executed with writeStream",
        "a Python step asks for the rows of a stream (count, collect, show, write …), which do not exist yet",
        "it must return a DataFrame: select, where, withColumn, join …",
        False,
    ),
    (
        r"Mkdirs failed to create|Cannot create (?:file|hdfs|s3a):|"
        r"Parent path is not a directory|Permission denied|AccessControlException",
        "a folder cannot be written (SAID)",
        "can you write there, or is a file in the way?",
        False,
    ),
    (r"No space left on device", "the disk is full", "make room and run again: nothing is lost", True),
)


_IN_SQL: Final = (  # conditions that speak of an expression; the user wrote it
    *("PARSE_SYNTAX_ERROR", "DATATYPE_MISMATCH", "MISSING_AGGREGATION", "MISSING_GROUP_BY", "WRONG_NUM_ARGS"),
    *("AMBIGUOUS_REFERENCE", "INVALID_EXTRACT", "UNSUPPORTED_SUBQUERY", "COLUMN_ALREADY_EXISTS", "UNCLOSED_BRACKETED"),
    *("GROUP_BY", "NON_LAST", "WINDOW_FUNCTION", "UNSUPPORTED_STAR", "INVALID_USAGE_OF_STAR", "NUM_COLUMNS_MISMATCH"),
)


def is_loss(error: BaseException) -> bool:
    """Whether Spark reports records that no longer exist."""
    return any(re.search(_LOSS, report) for report in _reports(error))


def has_grown(error: BaseException) -> bool:
    """Whether a batch ended because its records have fields that must become columns."""
    return any(_raised(report, GROWN) is not None for report in _reports(error))


def met_id(error: BaseException) -> int | None:
    """The unknown schema id that ended a batch."""
    return next((number for report in _reports(error) if (number := unknown_id(report)) is not None), None)


def explain(error: BaseException) -> PipelineError:
    """ERROR as a PipelineError; an error without an entry here keeps its first line."""
    if isinstance(error, PipelineError):
        return error
    reports = list(_reports(error))
    for report in reports:
        if (said := _raised(report, FATAL)) is not None:
            hint = "nothing of this batch was written; fix the producer of the records, or the expectation"
            return PipelineError(said, hint=hint)
        if (names := _raised(report, GROWN)) is not None:
            message = f"the records have fields that are not in the schema, and these cannot be added: {names}"
            return PipelineError(message, hint='[format.drift] new = "keep" puts them into one column, _extra, as JSON')
    if isinstance(error, PySparkException):
        analysed = _analysed(error)
        if analysed is not None:
            return analysed
    if isinstance(error, OSError) and error.filename and error.errno != errno.ENOSPC:
        hint = "is it a folder that you can write to?"
        return PipelineError(f"{error.filename}: {(error.strerror or str(error)).lower()}", hint=hint)
    for report in reports:
        if failed := _python_failure(report):
            hint = (
                "nothing of this batch was written; an expectation can keep records out that the function cannot take"
            )
            return PipelineError(f"a Python function failed: {failed}", hint=hint)
    for pattern, meaning, hint, retry in _KNOWN:
        for report in reports:
            if found := re.search(pattern, report):
                said = _line_with(report, found.start())
                return PipelineError(meaning.replace("SAID", said), hint=hint, retry=retry)
    hint = "--verbose shows Spark's whole report"
    if isinstance(error, (AnalysisException, IllegalArgumentException)):
        return PipelineError(f"Spark does not accept this: {plain(first_line(str(error)))}", hint=hint)
    return PipelineError(f"Spark stopped: {innermost(reports)}", hint=hint)


def _analysed(error: PySparkException) -> PipelineError | None:
    """Errors in the user's own SQL or steps: Spark names the condition and its parameters."""
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
    if condition == "UNRESOLVED_ROUTINE":
        name = parameters.get("routineName", "?").replace("`", "")
        return PipelineError(f"SQL: there is no function {name}")
    if condition.startswith(_IN_SQL):
        return PipelineError(f"SQL: {plain(first_line(str(error)))}", hint=_position(str(error)))
    if condition == "PATH_NOT_FOUND":
        return PipelineError(f"there is nothing at {parameters.get('path', '?')}")
    return None


def _raised(report: str, words: str) -> str | None:
    """The text after WORDS in a message that the plan raised. (Any report may show the plan, which contains WORDS
    too.)"""
    found = re.search(rf"USER_RAISED_EXCEPTION\] {re.escape(words)}([^\n]*)", report)
    return re.sub(r" SQLSTATE: \w+$", "", found[1]) if found else None


def _reports(error: BaseException) -> Iterator[str]:
    """The message of ERROR and of everything that caused it, Python's causes and Java's."""
    seen = 0
    current: BaseException | None = error
    while current is not None and seen < 20:
        yield str(current)
        seen += 1
        current = current.__cause__ or current.__context__


def _python_failure(report: str) -> str:
    """Of a traceback from a Python worker: the error, and the last line of code that is not Spark's."""
    found = _WORKER.search(report)
    if found is None:
        return ""
    places = [place for place in _FRAME.findall(found[1]) if "/pyspark/" not in place[0]]
    errors = re.findall(r"^([A-Za-z_][\w.]*(?:: [^\n]*)?)$", found[1], re.MULTILINE)
    if not places or not errors:
        return ""
    file, line, function = places[-1]
    return f"{errors[-1].strip()} ({file.rpartition('/')[2]}, line {line}, in {function})"


_WORKER: Final = re.compile(r"from the Python worker[^\n]*\n(Traceback.*?)(?:\n\s*\n|\n\tat |$)", re.DOTALL)
_FRAME: Final = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


def _line_with(report: str, at: int) -> str:
    start = report.rfind("\n", 0, at) + 1
    end = report.find("\n", at)
    line = plain(report[start : end if end >= 0 else len(report)].strip().removeprefix("Caused by: "))
    return line if len(line) < 200 else line[:197] + "…"


def _position(report: str) -> str:
    """The SQL with Spark's mark under the mistake."""
    _, found, rest = report.partition("== SQL ==\n")
    return rest.partition("\n\nJVM")[0].rstrip() if found else ""
