"""Connects a socket without blocking, trying each address of a host name in turn.

    dial = Dial(address)                  # under way
    ...                                   # until `dial.socket` can be written to
    dial.advance()                        # True: connected; False: the next address is being tried

Only looking up a name can block, for as long as the system's resolver does.
"""

from __future__ import annotations

import errno
import os
import socket
from collections import deque
from typing import Final

from ixion.clients.address import Address
from ixion.clients.faults import UnreachableError

UNDER_WAY: Final = (0, errno.EINPROGRESS)
Place = tuple[socket.AddressFamily, tuple[object, ...]]  # one address that a name leads to


class Dial:
    def __init__(self, address: Address, places: list[Place] | None = None) -> None:
        """UnreachableError if no address of the host can be tried. `places` are addresses looked up before."""
        self.address = address
        self._candidates = deque(resolve(address) if places is None else places)
        self.socket = self._next(0)

    def advance(self) -> bool:
        """Call when the socket can be written to. UnreachableError if this was the last address."""
        code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code == 0:
            return True
        self.socket.close()
        self.socket = self._next(code)
        return False

    def _next(self, code: int) -> socket.socket:
        while self._candidates:
            family, place = self._candidates.popleft()
            opened: socket.socket | None = None
            try:
                opened = socket.socket(family, socket.SOCK_STREAM)
                opened.setblocking(False)
                code = opened.connect_ex(place)
                if code in UNDER_WAY:
                    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    return opened
            except OSError as error:  # too many open files, no such family
                code = error.errno or errno.EIO
            except OverflowError:  # no valid port
                code = errno.EADDRNOTAVAIL
            if opened is not None:
                opened.close()
        raise refused(self.address, code)


def is_literal(host: str) -> bool:
    """Whether it is an IP address, which needs no lookup."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):
            continue
        return True
    return False


def resolve(address: Address) -> list[Place]:
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, ValueError, OverflowError) as error:
        raise unresolved(address, error) from None
    return [(family, place) for family, _, _, _, place in found]


def unresolved(address: Address, error: Exception) -> UnreachableError:
    """The fault for an error of the resolver."""
    if isinstance(error, socket.gaierror):
        return UnreachableError(f"there is no host {address.host!r} ({error.strerror})")
    return UnreachableError(f"{address} cannot be looked up: {error}")


def refused(address: Address, code: int) -> UnreachableError:
    if code == errno.ECONNREFUSED:
        return UnreachableError(f"connection refused by {address}; is the broker running?")
    return UnreachableError(f"{address} cannot be reached: {os.strerror(code)}")
