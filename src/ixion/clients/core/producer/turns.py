"""The sends that wait, and whose turn it is.

A send waits for the metadata of its topic, or for room in `buffer.memory`. Records of one topic are accepted in the
order of the calls, and so are all that wait for room: else small records would pass a large one for ever. A topic
without metadata, which may not even exist, holds up only its own records.

    waiting      a1 (room)   missing1 (metadata)   a2     b1
    whose turn   a1          missing1              after a1: both need room
"""

from __future__ import annotations

from collections.abc import Container
from typing import final


@final
class Turn:
    def __init__(self, topic: str) -> None:
        self.topic = topic


@final
class Turns:
    def __init__(self, known: Container[str]) -> None:
        """`known` has the topics whose metadata is here."""
        self._known = known
        self._waiting: list[Turn] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def needs_room(self) -> bool:
        """Whether a send waits for room, so that batches must not linger."""
        return bool(self._waiting) and any(turn.topic in self._known for turn in self._waiting)

    def is_free(self, topic: str) -> bool:
        """Whether a new send to that topic need not wait for others."""
        return not any(turn.topic == topic or turn.topic in self._known for turn in self._waiting)

    def take(self, topic: str) -> Turn:
        turn = Turn(topic)
        self._waiting.append(turn)
        return turn

    def is_next(self, turn: Turn) -> bool:
        for earlier in self._waiting:
            if earlier is turn:
                return True
            if earlier.topic == turn.topic or earlier.topic in self._known:
                return False
        return False

    def give_up(self, turn: Turn) -> None:
        self._waiting.remove(turn)
