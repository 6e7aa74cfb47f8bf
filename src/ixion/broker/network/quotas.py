"""Limits the number of connections: in total, per listener, per address.

Above the total or the listener's limit, accepting waits until a connection ends; above the address's limit a new
connection is closed. If there are several listeners, a protected one (brokers, controller) accepts connections beyond
the total, and we close clients' connections instead. We also close connections when a limit is lowered: idle ones
first, then busy ones, each time the one that was quiet longest. Kafka does so only for the total; we also do it for a
listener's and an address's limit.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ixion.broker.network.limits import NetworkLimits
from ixion.broker.network.listener import Listener

if TYPE_CHECKING:
    from ixion.broker.network.connection import Connection


class ConnectionQuotas:
    def __init__(self, limits: NetworkLimits, listeners: Sequence[Listener]) -> None:
        self._limits = limits
        names = [listener.name for listener in listeners]
        protected = {listener.name for listener in listeners if listener.protected}
        self._protected = frozenset(protected if len(names) > 1 else ())
        self.total = 0
        self.per_listener = Counter(dict.fromkeys(names, 0))
        self.per_address: dict[str, int] = {}
        self._waiting: list[asyncio.Future[None]] = []
        self._empty: asyncio.Future[None] | None = None

    def set_limits(self, limits: NetworkLimits) -> None:
        self._limits = limits
        self._wake()

    def available(self, listener: str) -> bool:
        if self.per_listener[listener] >= self._limits.of_listener(listener):
            return False
        return self.is_protected(listener) or self.total < self._limits.max_connections

    def is_protected(self, listener: str) -> bool:
        """Whether this listener is exempt from the limits on all listeners together."""
        return listener in self._protected

    async def wait_for_slot(self, listener: str) -> None:
        while not self.available(listener):
            slot = asyncio.get_running_loop().create_future()
            self._waiting.append(slot)
            await slot

    def take(self, listener: str, address: str) -> bool:
        """Count a new connection; False if its address has reached its limit."""
        count = self.per_address.get(address, 0)
        if count >= self._limits.of_address(address):
            return False
        self.per_address[address] = count + 1
        self.per_listener[listener] += 1
        self.total += 1
        return True

    def give_back(self, listener: str, address: str) -> None:
        self.total -= 1
        self.per_listener[listener] -= 1
        left = self.per_address[address] - 1
        if left:
            self.per_address[address] = left
        else:
            del self.per_address[address]  # keep no entry for an address without connections
        self._wake()
        if self.total == 0 and self._empty is not None and not self._empty.done():
            self._empty.set_result(None)

    def when_empty(self) -> asyncio.Future[None]:
        """A future that is done when the last connection has ended. There must be a connection."""
        self._empty = asyncio.get_running_loop().create_future()
        return self._empty

    @property
    def exceeded(self) -> bool:
        """Whether a connection of a protected listener has exceeded the total."""
        return self.total > self._limits.max_connections

    def excess(self, connections: Iterable[Connection]) -> list[Connection]:
        """The connections to close so that the limits hold; `connections` are all registered ones."""
        everyone = list(connections)
        going = [connection for connection in everyone if connection.closing]
        staying = [connection for connection in everyone if not connection.closing]
        total = self.total - len(going) - self._limits.max_connections
        gone_listeners = Counter(connection.listener for connection in going)
        gone_addresses = Counter(connection.address for connection in going)
        listeners = {
            name: count - gone_listeners[name] - self._limits.of_listener(name)
            for name, count in self.per_listener.items()
        }
        addresses = {
            address: count - gone_addresses[address] - self._limits.of_address(address)
            for address, count in self.per_address.items()
        }
        chosen = []
        for connection in sorted(staying, key=lambda each: (each.busy, each.last_active_ns)):
            name, address = connection.listener, connection.address
            over_total = total > 0 and not self.is_protected(name)
            if over_total or listeners[name] > 0 or addresses[address] > 0:
                chosen.append(connection)
                total -= 1
                listeners[name] -= 1
                addresses[address] -= 1
        return chosen

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for slot in waiting:
            if not slot.done():
                slot.set_result(None)
