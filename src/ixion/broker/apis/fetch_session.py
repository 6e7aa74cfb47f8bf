"""Fetch sessions (KIP-227): a client that fetches the same partitions repeatedly sends only the changes.

    request            session id   epoch    means
    full, new          0            0        make a session of these partitions
    incremental        7            1, 2 …   as before, with these changes
    full, again        7            0        end session 7, make another
    without, or last   0 or 7       -1       no session; end session 7

The response to an incremental fetch has only the partitions with changes: records, an error, another high watermark,
log start or read replica. Partitions that returned records move to the end, so that one busy partition does not starve
the others when the response is full.

The number of sessions is limited (max.incremental.fetch.session.cache.slots). When all slots are taken, a new session
replaces one that was not used for two minutes, or a smaller one older than two minutes; a follower's replaces any
consumer's. Otherwise the client fetches without a session, as from an old broker.

A client chooses how many partitions it names, and how long the names are. So the sessions of consumers have one budget
in bytes. A session that would exceed it is not made; one that grows beyond it ends. A session is made when the client's
rights are known, and only if it may read all of the partitions: another client would be refused at each fetch anyway.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import random
from sys import getsizeof
from typing import Final

from ixion.broker.replica.results import FetchWish

NO_SESSION: Final = 0
FIRST_EPOCH: Final = 0
MAX_EPOCH: Final = 2**31 - 1
MOST_BYTES: Final = 64 << 20  # of the sessions of consumers
MOST_FOLLOWERS_BYTES: Final = 512 << 20  # of followers: three with 200,000 partitions each
PARTITION_BYTES: Final = 700  # of a partition in a session, beside the name of its topic
MIN_LIFE_MS: Final = 120_000  # a session used within this time is not evicted

Place = tuple[bytes, str, int]  # topic id, or the name of a topic, and partition


class Cached:
    """A partition of a session: the client's request for it, and the last response."""

    def __init__(self, wish: FetchWish) -> None:
        self.wish = wish
        self.high_watermark = -1
        self.log_start = -1
        self.replica = -1


def size_of(place: Place) -> int:
    return PARTITION_BYTES + getsizeof(place[1])


class FetchSession:
    def __init__(self, session_id: int, by_id: bool, privileged: bool, now_ms: int) -> None:
        self.id: Final = session_id
        self.by_id: Final = by_id  # topics go by id, or by name
        self.privileged: Final = privileged  # a follower's
        self.created_ms: Final = now_ms
        self.used_ms = now_ms
        self.epoch = 1  # of the next request
        self.principal = ""  # only this principal may use the session; empty (no authorizer): any
        self.partitions: dict[Place, Cached] = {}
        self.unknown: dict[Place, Cached] = {}  # partitions with an unknown topic id
        self.bytes = 0
        self.counted = 0  # of these bytes, by `FetchSessions`

    def put(self, place: Place, wish: FetchWish) -> None:
        """Add a partition to the session, or change its request."""
        cached = self.partitions.get(place)
        if cached is None:
            cached = self.partitions[place] = Cached(wish)
            self.bytes += size_of(place)
        else:
            cached.wish = wish
        if not wish.topic:
            self.unknown[place] = cached
        elif self.unknown:
            self.unknown.pop(place, None)

    def fill(self, places: list[tuple[Place, Cached]]) -> None:
        """The partitions of a new session."""
        self.partitions = dict(places)
        self.bytes = sum([size_of(place) for place in self.partitions])
        self.unknown = {place: cached for place, cached in places if not cached.wish.topic}

    def forget(self, place: Place) -> None:
        if self.partitions.pop(place, None) is not None:
            self.bytes -= size_of(place)
        self.unknown.pop(place, None)

    def move_to_end(self, places: list[tuple[Place, Cached]]) -> None:
        for place, cached in places:
            if self.partitions.pop(place, None) is not None:
                self.partitions[place] = cached

    def advance(self) -> None:
        self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1


class FetchSessions:
    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.sessions: dict[int, FetchSession] = {}
        self.bytes = 0  # of the sessions of consumers
        self.followers_bytes = 0

    @property
    def partitions(self) -> int:
        return sum([len(session.partitions) for session in self.sessions.values()])

    def has_room_for(self, session: FetchSession) -> bool:
        """Count the session as it is now. Whether the sessions of its kind are within their budget."""
        more = session.bytes - session.counted
        session.counted = session.bytes
        if session.privileged:
            self.followers_bytes += more
            return more <= 0 or self.followers_bytes <= MOST_FOLLOWERS_BYTES
        self.bytes += more
        return more <= 0 or self.bytes <= MOST_BYTES

    def get(self, session_id: int) -> FetchSession | None:
        return self.sessions.get(session_id)

    def remove(self, session_id: int) -> None:
        session = self.sessions.get(session_id)
        if session is not None:
            self._evict(session)

    def create(self, by_id: bool, privileged: bool, size: int, now_ms: int) -> FetchSession | None:
        """None: there is no slot for a session of `size` partitions."""
        if len(self.sessions) >= self.slots and not self._make_room(privileged, size, now_ms):
            return None
        session_id = random.randrange(1, 2**31 - 1)
        while session_id in self.sessions:
            session_id = random.randrange(1, 2**31 - 1)
        session = FetchSession(session_id, by_id, privileged, now_ms)
        self.sessions[session_id] = session
        return session

    def _make_room(self, privileged: bool, size: int, now_ms: int) -> bool:
        if self.slots <= 0:
            return False
        oldest = min(self.sessions.values(), key=lambda session: session.used_ms)
        if now_ms - oldest.used_ms > MIN_LIFE_MS:
            return self._evict(oldest)
        # No session is idle: a larger session, or a follower's, replaces the smallest one older than MIN_LIFE_MS. A
        # follower's may also replace a younger one of a consumer.
        settled = [
            session
            for session in self.sessions.values()
            if now_ms - session.created_ms > MIN_LIFE_MS or (privileged and not session.privileged)
        ]
        if not settled:
            return False
        least = min(settled, key=lambda session: (session.privileged, len(session.partitions)))
        if (least.privileged, len(least.partitions)) < (privileged, size):
            return self._evict(least)
        return False

    def _evict(self, session: FetchSession) -> bool:
        del self.sessions[session.id]
        session.bytes = 0
        self.has_room_for(session)
        return True
