"""An election that waits until the cluster image of this broker shows the elected leaders."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ixion.language.model.topic_partition import TopicPartition
from ixion.purgatory.operation import DelayedOperation


class DelayedElectLeader(DelayedOperation):
    def __init__(
        self,
        timeout_ms: int,
        expected: Mapping[TopicPartition, int],
        leader_of: Callable[[str, int], int],
        done: Callable[[frozenset[TopicPartition]], None],
    ) -> None:
        """`expected` has the elected leaders; `done` gets the partitions that did not show theirs in time."""
        super().__init__(timeout_ms)
        self._waiting = dict(expected)
        self._leader_of = leader_of
        self._done = done

    def try_complete(self) -> bool:
        for key, leader in list(self._waiting.items()):
            if self._leader_of(*key) == leader:
                del self._waiting[key]
        return not self._waiting and self.force_complete()

    def waits_for(self) -> str:
        for (topic, number), leader in self._waiting.items():
            return f"{topic}-{number}: broker {leader} leads"
        return ""

    def on_complete(self) -> None:
        self._done(frozenset(self._waiting))
