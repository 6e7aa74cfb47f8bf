"""Framing and connection state without I/O, both roles: bytes in, events out.

`framing` splits the byte stream into frames, `server` is the broker's side of a connection, `client` the client's side,
`faults` describes a broken stream. No socket and no clock here.
"""

from ixion.wire.client import ClientConnection, ResponseFrame
from ixion.wire.faults import Looks, WireError
from ixion.wire.framing import Framer
from ixion.wire.server import RequestFrame, ServerConnection

__all__ = ["ClientConnection", "Framer", "Looks", "RequestFrame", "ResponseFrame", "ServerConnection", "WireError"]
