"""Where log lines go: to standard error, for people or for programs.

    2026-03-01 12:00:00.123 INFO ixion.cli.serve.run: ready addresses=127.0.0.1:9092
    {"time": "2026-03-01T11:00:00.123Z", "level": "info", "logger": "ixion.cli.serve.run", "message": "ready",
     "addresses": "127.0.0.1:9092"}                                               (printed as one line)

Fields of `extra={"address": …}` follow the message. Nothing is logged per request, so this need not be fast. It
configures the whole process, so only programs call it.
"""

from __future__ import annotations

import json
import logging
import time
from typing import Any, Final, TextIO

LEVELS: Final = ("debug", "info", "warning", "error", "critical")
FORMATS: Final = ("text", "json")
# Attributes of every record; all others are fields that the caller added.
_USUAL: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def configure_logs(stream: TextIO, level: str = "warning", form: str = "text") -> None:
    """Write every line of `level` or above to `stream`, in this format."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.raiseExceptions = False  # a closed terminal must not cause a second log line


def extras(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _USUAL}


class TextLines(logging.Formatter):
    """Local time; one line, and a traceback below it where there is one.

    Group ids, member ids and reasons come from clients: a line break in one must not start a new log line.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s", "%Y-%m-%d %H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        said = super().formatMessage(record)
        line = " ".join([said, *(f"{name}={value}" for name, value in extras(record).items())])
        return line if line.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


class JsonLines(logging.Formatter):
    """UTC; always one line."""

    def format(self, record: logging.LogRecord) -> str:
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{seconds}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        for name, value in extras(record).items():
            line.setdefault(name, value)
        return json.dumps(line, ensure_ascii=False, default=str)
