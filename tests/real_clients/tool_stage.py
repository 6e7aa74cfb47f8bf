"""Plays scenarios of Kafka's command line tools: the same commands print the same, here and with Apache Kafka.

What differs from run to run is written as a word: ADDRESS for the broker's, others as the test says. Between two words
there is one space, Java's stack traces are left out, and an exit code other than 0 is the last line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from devtools.scenarios import check
from tests.real_clients.toolbox import TOOLS, ToolBox

NAMES = {
    "consumer-groups": f"{TOOLS}consumer.group.ConsumerGroupCommand",
    "share-groups": f"{TOOLS}consumer.group.ShareGroupCommand",
    "streams-groups": f"{TOOLS}streams.StreamsGroupCommand",
    "groups": f"{TOOLS}GroupsCommand",
    "transactions": f"{TOOLS}TransactionsCommand",
}
SKIPPED = re.compile(r"\s*$|\s+at |java\.util\.concurrent\.ExecutionException|\s+\.\.\. \d+ more|Caused by:")
LOGGED = re.compile(r"^\d{4}-\d\d-\d\d \S+ (.*) \(\S+\)$")


class ToolStage:
    def __init__(self, box: ToolBox, bootstrap: str, words: Mapping[str, str], times: Mapping[str, str]) -> None:
        """`words`: what stands in the file for what a tool is given or prints; `times`: what becomes of a pattern."""
        self.box = box
        self.bootstrap = bootstrap
        self.words = words
        self.times = times

    def play(self, scenario: Path) -> None:
        check(scenario, self.run)

    def run(self, words: list[str]) -> list[str]:
        tool, *given = words
        server = () if "--validate-regex" in given else ("--bootstrap-server", self.bootstrap)
        code, printed = self.box.run(NAMES[tool], *server, *(self.words.get(word, word) for word in given))
        printed = printed.replace(self.bootstrap, "ADDRESS")
        for word, meant in self.words.items():
            printed = printed.replace(meant, word)
        lines = [LOGGED.sub(r"\1", line) for line in printed.splitlines() if not SKIPPED.match(line)]
        lines = [" ".join(line.split()) for line in lines] + ([f"exit {code}"] if code else [])
        for pattern, word in self.times.items():
            lines = [re.sub(pattern, word, line) for line in lines]
        return lines
