"""Framing and connection state without I/O, both roles: bytes in, events out.

`framing` cuts the byte stream into frames, `server` is a client as the broker sees it, `client` a broker as its client
sees it, `faults` says what was wrong with a stream and what it looked like. No socket and no clock here.
"""

from ixion.wire.client import ClientConnection, ResponseFrame
from ixion.wire.faults import Looks, WireError
from ixion.wire.framing import Framer
from ixion.wire.server import RequestFrame, ServerConnection

__all__ = ["ClientConnection", "Framer", "Looks", "RequestFrame", "ResponseFrame", "ServerConnection", "WireError"]
