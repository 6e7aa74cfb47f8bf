"""Messages of Java and Spark without the parts that do not help a user."""

from __future__ import annotations

import re


def first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def plain(text: str) -> str:
    """A line without names of queries and classes and Spark's error code before it, and the SQL state after it."""
    text = re.sub(r"^(?:.*terminated with exception: )?[: ]*", "", text)
    text = re.sub(r"^(?:(?:[a-z]\w*\.)+[A-Z][\w$]*(?:Exception|Error|Failure): )+", "", text)
    return re.sub(r"^\[[A-Z_.0-9]+\] | SQLSTATE: \w+.*$", "", text)


def innermost(reports: list[str]) -> str:
    """The last "Caused by"; without one, py4j's second line, or the first line."""
    causes = re.findall(r"(?:^|\n)(?:Caused by: |: )([^\n]+)", "\n".join(reports))
    causes = [cause for cause in causes if "Python Proxy" not in cause]
    return plain(causes[-1] if causes else first_line(reports[0]))
