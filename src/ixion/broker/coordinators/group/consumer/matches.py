"""Which topics match the patterns of members.

Matching may be slow (see `coordinators.patterns`) and topics may be many, so patterns are matched in turns of the event
loop. Whether a name matches never changes, so results are remembered and only new names are matched. The memory for
results is bounded; a pattern whose results were dropped is matched again.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from ixion.broker.coordinators.group.topics import TopicLookup
from ixion.broker.coordinators.patterns import Pattern, PatternError
from ixion.timer.lane import Lane
from ixion.timer.turns import Steps

logger = logging.getLogger(__name__)

STEP: Final = 2_000  # names times instructions per step: at most 2 ms, unless a single name takes longer
MOST_PATTERNS: Final = 100  # remembered
MOST_NAMES: Final = 1_000_000  # remembered, of all patterns together
MOST_WAITING: Final = 1_000  # patterns that are being matched; beyond that, the next heartbeat asks again


class Matched(NamedTuple):
    version: int  # of the topics
    seen: frozenset[str]  # the names that were there
    topics: frozenset[str]  # the names that match

    @property
    def names(self) -> int:
        return len(self.seen) + len(self.topics)


class Matches:
    def __init__(self, topics: TopicLookup, lane: Lane, on_matched: Callable[[str, str], None]) -> None:
        """`on_matched` is called with a group and its pattern if matching took longer than a turn."""
        self._topics = topics
        self._lane = lane
        self._on_matched = on_matched
        self._known: OrderedDict[str, Matched] = OrderedDict()  # the last used at the end
        self._names = 0  # in `_known`
        self._waiting: dict[str, set[str]] = {}  # patterns that are being matched, and the groups that wait for them
        self._all: tuple[int, frozenset[str]] = (-1, frozenset())  # a version of the topics, and their names

    def find(self, regex: str, group_id: str) -> frozenset[str] | None:
        """The topics that match now. None if matching takes longer than a turn: then `on_matched` is called later."""
        found = self._up_to_date(regex)
        if found is None and regex not in self._waiting and len(self._waiting) < MOST_WAITING:
            self._waiting[regex] = set()
            self._lane.run(self._match(regex), partial(self._matched, regex))
            found = self._up_to_date(regex)
        if found is None and regex in self._waiting:
            self._waiting[regex].add(group_id)
        return found

    def _up_to_date(self, regex: str) -> frozenset[str] | None:
        known = self._known.get(regex)
        if known is None or known.version != self._topics.version:
            return None
        self._known.move_to_end(regex)
        return known.topics

    def _match(self, regex: str) -> Steps[None]:
        version, names = self._names_now()
        known = self._known.get(regex) or Matched(-1, frozenset(), frozenset())
        found = set(known.topics & names)
        try:
            pattern = Pattern(regex)
            at_once = max(STEP // pattern.size, 1)
            for number, name in enumerate(names - known.seen, 1):
                if pattern.matches(name):
                    found.add(name)
                if number % at_once == 0:
                    yield
        except PatternError as error:  # from a record in the log; patterns in requests are checked
            logger.warning("a pattern from the log matches nothing: %s", error)
        self._remember(regex, Matched(version, names, frozenset(found)))

    def _matched(self, regex: str, _: None, error: Exception | None) -> None:
        groups = self._waiting.pop(regex)
        if error is not None:
            logger.error("matching a pattern failed", exc_info=error)
            return
        for group_id in groups:
            self._on_matched(group_id, regex)

    def _names_now(self) -> tuple[int, frozenset[str]]:
        if self._all[0] != self._topics.version:
            self._all = self._topics.version, frozenset(self._topics.names())
        return self._all

    def _remember(self, regex: str, matched: Matched) -> None:
        before = self._known.pop(regex, None)
        self._names += matched.names - (0 if before is None else before.names)
        self._known[regex] = matched
        while len(self._known) > 1 and (len(self._known) > MOST_PATTERNS or self._names > MOST_NAMES):
            _, oldest = self._known.popitem(last=False)
            self._names -= oldest.names
