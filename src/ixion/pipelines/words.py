"""What Java and Spark say, without what only they care about."""

from __future__ import annotations

import re


def first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def plain(text: str) -> str:
    """A line without the names of queries and classes and Spark's code in front, and without the SQL state behind."""
    text = re.sub(r"^(?:.*terminated with exception: )?[: ]*", "", text)
    text = re.sub(r"^(?:(?:[a-z]\w*\.)+[A-Z][\w$]*(?:Exception|Error|Failure): )+", "", text)
    return re.sub(r"^\[[A-Z_.0-9]+\] | SQLSTATE: \w+.*$", "", text)


def innermost(reports: list[str]) -> str:
    """The last "Caused by" says most; else what py4j puts into its second line; else the first line."""
    causes = re.findall(r"(?:^|\n)(?:Caused by: |: )([^\n]+)", "\n".join(reports))
    causes = [cause for cause in causes if "Python Proxy" not in cause]
    return plain(causes[-1] if causes else first_line(reports[0]))
