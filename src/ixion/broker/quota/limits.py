"""Finds the quota of a client: the most specific one that is set, in Kafka's order.

    1  user and client id          5  every user, every client id
    2  user, every client id       6  every user
    3  user                        7  client id
    4  every user, client id       8  every client id

"Every" is Kafka's default entity: each user or client id that it applies to has its own quota. 1, 2, 4 and 5 apply to a
user with a client id; 3 and 6 to all clients of a user together; 7 and 8 to all clients with that id, of any user.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final, NamedTuple

from ixion.broker.quota.least_used import LeastUsed

DEFAULT: Final = "<default>"

PRODUCE: Final = "producer_byte_rate"  # bytes of requests per second
FETCH: Final = "consumer_byte_rate"  # bytes of records per second
REQUEST: Final = "request_percentage"  # of one core
MUTATION: Final = "controller_mutation_rate"  # partitions created and deleted per second
KINDS: Final = (PRODUCE, FETCH, REQUEST, MUTATION)
CONNECTIONS: Final = "connection_creation_rate"  # of an address, per second
MOST_BYTES: Final = 4 << 20  # of clients whose quota is cached
FOUND_BYTES: Final = 300


class Entity(NamedTuple):
    user: str | None = None
    client_id: str | None = None


class Found(NamedTuple):
    held_by: tuple[str, str]  # user and client id that share the quota; empty: any
    bound: float


class QuotaLimits:
    def __init__(self) -> None:
        self.entities: dict[Entity, dict[str, float]] = {}
        self._by_kind: dict[str, dict[Entity, float]] = {kind: {} for kind in KINDS}
        # Results of `find`, until a quota changes.
        self.found: LeastUsed[tuple[str, str, str], Found | None] = LeastUsed(MOST_BYTES, FOUND_BYTES)

    @property
    def any(self) -> bool:
        return bool(self.entities)

    def has(self, kind: str) -> bool:
        return bool(self._by_kind[kind])

    def put(self, entity: Entity, quotas: Mapping[str, float]) -> None:
        """Replace all quotas of the entity."""
        self.found.clear()
        kept = {kind: value for kind, value in quotas.items() if kind in self._by_kind}
        for kind, bounds in self._by_kind.items():
            bounds.pop(entity, None)
            if kind in kept:
                bounds[entity] = kept[kind]
        if kept:
            self.entities[entity] = kept
        else:
            self.entities.pop(entity, None)

    def find(self, kind: str, user: str, client_id: str) -> Found | None:
        if not self._by_kind[kind]:
            return None
        return self.found.get((kind, user, client_id), partial(self._find, kind, user, client_id))

    def _find(self, kind: str, user: str, client_id: str) -> Found | None:
        bounds = self._by_kind[kind]
        for entity, held_by in (
            (Entity(user, client_id), (user, client_id)),
            (Entity(user, DEFAULT), (user, client_id)),
            (Entity(user), (user, "")),
            (Entity(DEFAULT, client_id), (user, client_id)),
            (Entity(DEFAULT, DEFAULT), (user, client_id)),
            (Entity(DEFAULT), (user, "")),
            (Entity(None, client_id), ("", client_id)),
            (Entity(None, DEFAULT), ("", client_id)),
        ):
            bound = bounds.get(entity)
            if bound is not None:
                return Found(held_by, bound)
        return None


def quotas_of(config: Mapping[str, str]) -> dict[str, float]:
    """The quotas among the settings of an entity. ValueError for one that is not a number above 0: Apache Kafka may
    have stored it, and the throttle time is divided by it."""
    found = {kind: float(config[kind]) for kind in KINDS if kind in config}
    for kind, bound in found.items():
        if not 0 < bound < float("inf"):
            raise ValueError(f"{kind} must be more than 0, not {config[kind]}")
    return found
