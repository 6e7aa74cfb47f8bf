"""Writes changes of consumer, share and streams groups to the log. If a write fails, the partition is loaded again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from ixion.broker.coordinators.group.bounds import Bounds
from ixion.broker.coordinators.group.consumer.change import Change
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.broker.coordinators.group.journal import Draft, Journal
from ixion.broker.coordinators.group.records import Entry
from ixion.broker.coordinators.group.shard import GroupShard
from ixion.broker.coordinators.group.shards import Shards
from ixion.broker.coordinators.group.share.group import ShareGroup
from ixion.broker.coordinators.group.streams.group import StreamsGroup
from ixion.broker.coordinators.log_codes import COORDINATOR_CODES
from ixion.language.model.errors import ErrorCode

logger = logging.getLogger(__name__)

A = TypeVar("A")


class ConsumerWrites:
    def __init__(self, shards: Shards, journal: Journal, bounds: Bounds) -> None:
        self._shards = shards
        self._journal = journal
        self._bounds = bounds

    def note(self, group: ConsumerGroup | ShareGroup | StreamsGroup) -> None:
        """Count the memory of a group that has changed."""
        self._bounds.hold(group.group_id, group.held_bytes)

    def write(
        self,
        shard: GroupShard,
        records: Sequence[Entry],
        answer: A,
        respond: Callable[[A], None],
        refuse: Callable[[ErrorCode], A],
    ) -> None:
        """Respond with `answer` once the records are in the log, or with `refuse(code)` if they cannot be written."""

        def written(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:
                respond(answer)
            else:
                self._shards.reload(shard)
                respond(refuse(COORDINATOR_CODES.get(code, code)))

        self._journal.write_change(shard.partition, records, written)

    def write_quietly(self, shard: GroupShard, records: Sequence[Entry]) -> None:
        """For a change that no request waits for."""
        self._journal.write_change(shard.partition, records, partial(self._written_quietly, shard))

    def save(self, change: Change) -> None:
        shard = self._shards.find(change.group.group_id)
        if not isinstance(shard, ErrorCode):
            self.write_quietly(shard, change.records)

    def draft(self, group_id: str) -> Draft:
        return self._journal.draft(self._shards.partition_for(group_id))

    def write_draft(self, shard: GroupShard, draft: Draft) -> None:
        draft.write(partial(self._written_quietly, shard))

    def _written_quietly(self, shard: GroupShard, code: ErrorCode) -> None:
        if code is not ErrorCode.NONE:
            logger.warning("a change of a group could not be stored (%s); loading its partition again", code.name)
            self._shards.reload(shard)
