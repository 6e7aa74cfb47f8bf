"""A member of a classic group."""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections.abc import Callable, Container
from sys import getsizeof
from typing import Final

from ixion.language.protocol.messages.k11_join_group import JoinGroupResponse
from ixion.language.protocol.messages.k14_sync_group import SyncGroupResponse

RespondJoin = Callable[[JoinGroupResponse], None]
RespondSync = Callable[[SyncGroupResponse], None]
Protocols = tuple[tuple[str, bytes], ...]  # name and metadata, the member's favourite first


BYTES_PER_PROTOCOL: Final = 100  # memory for a protocol besides its name and metadata
FREE_BYTES: Final = 1_000  # of a member's names: only long ones count


def size_of(protocols: Protocols) -> int:
    return sum(len(name) + len(metadata) + BYTES_PER_PROTOCOL for name, metadata in protocols)


class ClassicMember:
    """A member: its protocols, its assignment, and the answers that it waits for.

    The two `respond_…` fields are set exactly while a request of the member waits. Only `ClassicGroup` sets
    `respond_join`, because it counts the members that wait.
    """

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "heartbeat_satisfied",
        "instance_id",
        "is_new",
        "member_id",
        "names_bytes",
        "protocol_type",
        "protocols",
        "rebalance_timeout_ms",
        "respond_join",
        "respond_sync",
        "session_timeout_ms",
    )

    def __init__(
        self,
        *,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.assignment = assignment
        self.respond_join: RespondJoin | None = None
        self.respond_sync: RespondSync | None = None
        self.is_new = False  # in its first rebalance: it does not know its id yet and sends no heartbeats
        self.heartbeat_satisfied = False
        self.names_bytes = max(getsizeof(member_id) + getsizeof(instance_id) + getsizeof(client_id) - FREE_BYTES, 0)

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def awaits_join(self) -> bool:
        return self.respond_join is not None

    @property
    def awaits_sync(self) -> bool:
        return self.respond_sync is not None

    @property
    def is_alive(self) -> bool:
        """Whether the expected heartbeat counts as received.

        A member that waits for our answer cannot send one, so it counts as alive; except a new member, which may have
        closed its connection and come back under another id.
        """
        if not self.is_new and (self.awaits_join or self.awaits_sync):
            return True
        return self.heartbeat_satisfied

    def metadata(self, protocol: str) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise KeyError(f"member {self.member_id!r} does not support protocol {protocol!r}")

    def vote(self, candidates: Container[str]) -> str:
        """The first of the member's protocols that is among the candidates."""
        for name, _ in self.protocols:
            if name in candidates:
                return name
        raise KeyError(f"member {self.member_id!r} supports none of {candidates!r}")
