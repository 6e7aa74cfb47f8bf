"""Log lines for people and for programs."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from ixion.broker.startup.logs import configure_logs


@pytest.fixture(autouse=True)
def _put_back() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, complain = root.handlers[:], root.level, logging.raiseExceptions
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.raiseExceptions = complain


def lines(form: str, level: str = "info") -> str:
    stream = io.StringIO()
    configure_logs(stream, level, form)
    logger = logging.getLogger("ixion.tests")
    logger.debug("not seen")
    logger.info("said %d times", 3, extra={"address": "10.0.0.7", "tries": 2})
    try:
        raise ValueError("a bug")
    except ValueError:
        logger.exception("it failed\nbadly")
    return stream.getvalue()


def test_text_is_for_people() -> None:
    first, *rest = lines("text").splitlines()
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} INFO ixion\.tests: said 3 times address=10\.0\.0\.7 tries=2", first
    )
    assert rest[-1] == "ValueError: a bug"


@pytest.mark.parametrize("end", ["\n", "\r", "\u2028", "\x1b"])
def test_what_a_client_sent_cannot_begin_a_line(end: str) -> None:
    stream = io.StringIO()
    configure_logs(stream, "info", "text")
    logging.getLogger("ixion.tests").info("group %s", f"é g{end}2026-01-01 forged", extra={"address": f"1{end}2"})
    (line,) = stream.getvalue().splitlines()
    assert "é g" in line
    assert end not in line
    assert line.count(ascii(end)[1:-1]) == 2


def test_json_is_one_object_a_line() -> None:
    said, failed = (json.loads(line) for line in lines("json").splitlines())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", said.pop("time"))
    assert said == {
        "level": "info",
        "logger": "ixion.tests",
        "message": "said 3 times",
        "address": "10.0.0.7",
        "tries": 2,
    }
    assert failed["message"] == "it failed\nbadly"
    assert failed["exception"].endswith("ValueError: a bug")


def test_lines_below_the_level_are_not_logged() -> None:
    assert "said" not in lines("text", "warning")


def test_what_json_does_not_know_is_written_as_text() -> None:
    stream = io.StringIO()
    configure_logs(stream, "info", "json")
    logging.getLogger("ixion.tests").info("odd", extra={"odd": {1, 2}.__class__, "message_like": b"x"})
    assert json.loads(stream.getvalue())["message_like"] == "b'x'"
