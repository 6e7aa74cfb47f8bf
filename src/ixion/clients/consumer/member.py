"""What a consumer needs of its member of a group, whichever protocol the group speaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ixion.clients.metadata import TopicPartition


class GroupMember(Protocol):
    must_rejoin: bool  # the assignment has changed, or will: join() says to what
    generation: int  # -1 while it is not in the group

    def subscribe(self, topics: Sequence[str]) -> None: ...

    def join(self, owned: Sequence[TopicPartition] = ()) -> list[TopicPartition]: ...

    def heartbeat_if_due(self) -> None: ...

    def commit(self, offsets: Mapping[TopicPartition, int]) -> bool: ...

    def leave(self) -> None: ...
