"""The stored state of share partitions, as the group coordinator needs it; see `coordinators.share.router`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ixion.broker.replica.share_persister import SharePartitionKey
from ixion.language.model.errors import ErrorCode


class Summary(Protocol):
    """Where a share partition stands."""

    @property
    def leader_epoch(self) -> int: ...
    @property
    def start_offset(self) -> int:
        """-1 if nothing was fetched yet."""

    @property
    def complete_count(self) -> int:
        """Finished records behind the start offset; -1 if not known."""


Answered = Callable[[ErrorCode], None]
Summarized = Callable[[ErrorCode, Summary | None], None]


class ShareStates(Protocol):
    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, done: Answered) -> None: ...

    def delete(self, key: SharePartitionKey, done: Answered) -> None: ...

    def summary(self, key: SharePartitionKey, done: Summarized) -> None: ...
