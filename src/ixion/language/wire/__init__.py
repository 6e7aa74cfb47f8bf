"""Framing and connection state without I/O, both roles: bytes in, events out.

`framing` splits the byte stream into frames, `server` is the broker's side of a connection, `client` the client's side,
`faults` describes a broken stream. No socket and no clock here.
"""

# The modules of this package are compiled: see setup.py.

from ixion.language.wire.client import ClientConnection, ResponseFrame
from ixion.language.wire.faults import Looks, WireError
from ixion.language.wire.framing import Framer
from ixion.language.wire.server import RequestFrame, ServerConnection

__all__ = ["ClientConnection", "Framer", "Looks", "RequestFrame", "ResponseFrame", "ServerConnection", "WireError"]
