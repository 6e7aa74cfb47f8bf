"""The start offsets of share groups: described, altered and deleted by administrators (KIP-932, KIP-1226).

They are kept by the share coordinator; which partitions a group has is known here. To alter or delete them the group
must be empty. Altered offsets begin a new group epoch, which fences what leaders have in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ixion.broker.coordinators.group.share.group import Partition
from ixion.broker.coordinators.group.share.states import ShareStates, Summary
from ixion.broker.coordinators.group.share_protocol import ShareProtocol
from ixion.broker.coordinators.group.topics import Topic, TopicLookup
from ixion.broker.replica.share_persister import NO_OFFSET, SharePartitionKey
from ixion.language.model.errors import ErrorCode
from ixion.timer.turns import Steps


@dataclass(frozen=True, slots=True)
class StartOffset:
    """Of a share partition; with an error the rest is -1."""

    partition: int
    code: ErrorCode = ErrorCode.NONE
    start: int = NO_OFFSET
    leader_epoch: int = 0
    complete_count: int = -1


Described = Callable[[Sequence[StartOffset]], None]
Altered = Callable[[list[ErrorCode]], None]


class ShareOffsets:
    def __init__(self, protocol: ShareProtocol, topics: TopicLookup, states: Callable[[], ShareStates]) -> None:
        self._protocol = protocol
        self._topics = topics
        self._states = states

    def known(self, group_id: str) -> list[tuple[Topic, list[int]]] | ErrorCode:
        """The topics and partitions that the group has offsets of."""
        found = self._protocol.find(group_id)
        if isinstance(found, ErrorCode):
            return found
        return [
            (topic, sorted(known.initialized))
            for topic_id, known in found[1].known.items()
            if known.initialized and (topic := self._topics.by_id(topic_id)) is not None
        ]

    def describe(self, group_id: str, name: str, numbers: Sequence[int], done: Described) -> Steps[None]:
        """A client may name any number of partitions. `done` is called once, after the last step or later."""
        topic = self._topics.by_name(name)
        found = self._protocol.find(group_id)
        known = None if topic is None or isinstance(found, ErrorCode) else found[1].known.get(topic.topic_id)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else ErrorCode.NONE
        lines: list[StartOffset] = []
        asked: list[tuple[int, SharePartitionKey]] = []
        for place, number in enumerate(numbers):
            lines.append(StartOffset(number, code))
            if topic is not None and known is not None and number in known.initialized:
                asked.append((place, SharePartitionKey(group_id, topic.topic_id, number)))
            yield
        left = len(asked)
        if not left:
            done(lines)
            return

        def answered(place: int, code: ErrorCode, seen: Summary | None) -> None:
            nonlocal left
            number = numbers[place]
            lines[place] = (
                StartOffset(number, code)
                if seen is None
                else StartOffset(number, code, seen.start_offset, max(seen.leader_epoch, 0), seen.complete_count)
            )
            left -= 1
            if left == 0:
                done(lines)

        for place, key in asked:
            self._states().summary(key, partial(answered, place))
            yield

    def check_empty(self, group_id: str, *, may_be_new: bool = False) -> ErrorCode:
        """Whether the offsets may be altered or deleted."""
        found = self._protocol.find(group_id)
        if isinstance(found, ErrorCode):
            return ErrorCode.NONE if may_be_new and self._protocol.may_make(group_id) else found
        if found[1].is_going:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return ErrorCode.NON_EMPTY_GROUP if found[1].members else ErrorCode.NONE

    def alter(self, group_id: str, wanted: Sequence[tuple[str, int, int]], done: Altered) -> None:
        """Topic, partition and start offset of each. The group is empty (`check_empty`), or is made."""
        codes = [ErrorCode.NONE] * len(wanted)
        places: list[int] = []
        chosen: list[tuple[Partition, int]] = []
        for place, (name, number, start) in enumerate(wanted):
            topic = self._topics.by_name(name)
            if topic is None or not 0 <= number < topic.partitions:
                codes[place] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif start < NO_OFFSET:
                codes[place] = ErrorCode.INVALID_REQUEST
            else:
                places.append(place)
                chosen.append(((topic.topic_id, number), start))

        def altered(results: list[ErrorCode]) -> None:
            for place, code in zip(places, results, strict=True):
                codes[place] = code
            done(codes)

        found = self._protocol.find_or_make(group_id) if chosen else ErrorCode.NONE
        if isinstance(found, ErrorCode):
            done([code or found for code in codes])
        else:
            self._protocol.partitions.alter(*found, chosen, altered)

    def delete(self, group_id: str, names: Sequence[str], done: Altered) -> None:
        """The group is empty (`check_empty`)."""
        found = self._protocol.find(group_id)
        if isinstance(found, ErrorCode):
            done([found] * len(names))
            return
        shard, group = found
        ids = [None if (topic := self._topics.by_name(name)) is None else topic.topic_id for name in names]
        known = [each for each in ids if each is not None and (each in group.known or each in group.deleting)]

        def deleted(code: ErrorCode) -> None:
            done([code if each in known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for each in ids])

        if known:
            self._protocol.partitions.delete(shard, group, known, deleted)
        else:
            deleted(ErrorCode.NONE)
