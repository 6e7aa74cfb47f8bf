"""Share sessions: a member of a group at one broker names its partitions once, and then only the changes.

    epoch of the request    means
    0                       begin, with these partitions; a session that the member has is replaced
    1, 2, …, 2^31-1, 1      go on
    -1                      end: what the member has acquired here is released

Fetches and acknowledgements both count the epoch on. A session belongs to the connection that began it, and ends with
it. The number of sessions is limited (group.share.max.share.sessions), and so are the bytes that they remember, because
a client chooses how many partitions it names, and how long the name of a group is.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import getsizeof
from typing import Final

FIRST_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
MAX_EPOCH: Final = 2**31 - 1
MOST_BYTES: Final = 128 << 20
MOST_PLACES: Final = 10_000  # of one session: each fetch walks through them
PARTITION_BYTES: Final = 1_500  # of a partition in a session, with its share partition
SESSION_BYTES: Final = 1_000

Place = tuple[bytes, int]  # topic id and partition
SessionKey = tuple[str, str]  # group and member


class ShareSession:
    def __init__(self, key: SessionKey, principal: str) -> None:
        self.key: Final = key
        self.principal: Final = principal
        self.epoch = 1  # of the next request
        self.places: dict[Place, None] = {}  # in their order
        self.open = True
        self.stop_fetch: Callable[[], None] | None = None  # answers the fetch that waits
        self.on_end: Callable[[], None] | None = None

    @property
    def group(self) -> str:
        return self.key[0]

    @property
    def member(self) -> str:
        return self.key[1]

    @property
    def bytes(self) -> int:
        return bytes_of(self.key, len(self.places))

    def advance(self) -> None:
        self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1

    def in_turn(self) -> list[Place]:
        """The places, beginning with another one each time, so that each is first now and then."""
        places = list(self.places)
        if places:
            at = self.epoch % len(places)
            places = places[at:] + places[:at]
        return places


def bytes_of(key: SessionKey, partitions: int) -> int:
    return SESSION_BYTES + getsizeof(key[0]) + getsizeof(key[1]) + PARTITION_BYTES * partitions


class ShareSessions:
    def __init__(self, most: int) -> None:
        self.most = most
        self.sessions: dict[SessionKey, ShareSession] = {}
        self.bytes = 0

    def __len__(self) -> int:
        return len(self.sessions)

    def get(self, key: SessionKey, principal: str) -> ShareSession | None:
        session = self.sessions.get(key)
        return session if session is not None and session.principal == principal else None

    def begin(self, key: SessionKey, principal: str, places: list[Place]) -> ShareSession | None:
        """None: there are too many, or they are too large. A session that the member has goes on then."""
        before = self.sessions.get(key)
        if before is not None and before.principal != principal:
            return None
        if len(places) > MOST_PLACES:
            return None
        others, bytes_of_others = len(self.sessions), self.bytes
        if before is not None:
            others, bytes_of_others = others - 1, bytes_of_others - before.bytes
        if others >= self.most or bytes_of_others + bytes_of(key, len(places)) > MOST_BYTES:
            return None
        if before is not None:
            self.end(before)
        session = ShareSession(key, principal)
        session.places = dict.fromkeys(places)
        self.sessions[key] = session
        self.bytes += session.bytes
        return session

    def change(self, session: ShareSession, added: list[Place], forgotten: list[Place]) -> bool:
        """False: it would be too large, and is as it was."""
        before = session.bytes
        more = sum([place not in session.places for place in added])
        if more and (len(session.places) + more > MOST_PLACES or self.bytes + PARTITION_BYTES * more > MOST_BYTES):
            return False
        for place in added:
            session.places[place] = None
        for place in forgotten:
            session.places.pop(place, None)
        self.bytes += session.bytes - before
        return True

    def end(self, session: ShareSession) -> None:
        session.open = False
        stop, session.stop_fetch = session.stop_fetch, None
        on_end, session.on_end = session.on_end, None
        if self.sessions.get(session.key) is session:
            del self.sessions[session.key]
            self.bytes -= session.bytes
        if on_end is not None:
            on_end()
        if stop is not None:
            stop()
