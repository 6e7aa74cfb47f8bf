"""What differs from run to run, taken out of what a command prints."""

from __future__ import annotations

import re
from typing import Final

VOLATILE: Final = (
    (re.compile(r"^ixion \S+ ready on \S+ in \d+ ms"), "ixion VERSION ready on ADDRESS in TIME"),
    (re.compile(r"(?<=^try: echo hello \| ixion produce greetings)[^;]*(; pages at \S+)?"), ""),
    (re.compile(r"\b[\w-]{22}(?!\w)"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\.\d{3}Z?"), "TIME"),
    (re.compile(r"\b1[789]\d{11}\b"), "MILLISECONDS"),
    (re.compile(r"127\.0\.0\.1:\d+|localhost:\d+"), "ADDRESS"),
    (re.compile(r"(?<=[ →])/\S+/(?=ixion-\w+|lake/|\.ixion/)"), "FOLDER/"),
    (re.compile(r"ixion-data|ixion-\w{8}\b"), "DATA"),
    (re.compile(r"[\d,.]+ rows/s|[\d.]+ s$|[\d,.]+ in the last batch|rate +[\d,.]+"), "FIGURE"),
)
FIGURES: Final = re.compile(r"\b\d[\d,.]*")
MEASURED: Final = ("ixion perf", "ixion cluster")  # of these only the words are compared


def steady(command: str, printed: str) -> list[str]:
    """The lines, with a name in place of everything that another run prints otherwise."""
    lines = []
    for line in ready(printed) if command == "make run" else printed.splitlines():
        for pattern, word in VOLATILE:
            line = pattern.sub(word, line)
        if command.startswith(MEASURED):
            line = " ".join(FIGURES.sub("N", line).split())
        lines.append(line)
    return lines


def ready(printed: str) -> list[str]:
    """The lines of a broker; what make does before depends on what is installed and built already."""
    lines = printed.splitlines()
    return [line for at, line in enumerate(lines) if any(" ready on " in before for before in lines[: at + 1])]
