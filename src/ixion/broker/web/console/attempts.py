"""How often each address may try to log in: `MOST` times a minute, not counting those that succeed.

An attempt counts from its beginning, so that many at a time are no way around it. Addresses of IPv6 count by their
network of 64 bits. `KEPT` addresses are remembered; beyond that the oldest ones are forgotten.
"""

from __future__ import annotations

import ipaddress
from typing import Final, NamedTuple

from ixion.broker.web.response import RefusedError
from ixion.timer.clock import NS_PER_MS, Clock, system_clock

MOST: Final = 10
WINDOW_S: Final = 60
KEPT: Final = 10_000


class Count(NamedTuple):
    attempts: int
    since_ns: int


class Attempts:
    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._counts: dict[str, Count] = {}

    def take(self, address: str) -> None:
        """RefusedError if there were too many."""
        key = network_of(address)
        found = self._recent(key)
        if found is None:
            self._counts.pop(key, None)
            if len(self._counts) >= KEPT:
                del self._counts[next(iter(self._counts))]
            found = Count(0, self._clock())
        self._counts[key] = found._replace(attempts=found.attempts + 1)

    def check(self, address: str) -> None:
        """RefusedError if there were too many; this is none."""
        self._recent(network_of(address))

    def _recent(self, key: str) -> Count | None:
        found = self._counts.get(key)
        if found is None or self._clock() - found.since_ns >= WINDOW_S * 1000 * NS_PER_MS:
            return None
        if found.attempts >= MOST:
            raise RefusedError(429, "too many logins have failed: try again in a minute")
        return found

    def give_back(self, address: str) -> None:
        """The attempt has succeeded."""
        key = network_of(address)
        found = self._counts.get(key)
        if found is not None:
            self._counts[key] = found._replace(attempts=max(found.attempts - 1, 0))


def network_of(address: str) -> str:
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.IPv6Network((found, 64), strict=False))
    return str(found)
