"""Sockets, acceptors, processors, the request channel and its limits: stages on one event loop.

The path of a request: `acceptor` → `processor` → `connection` (mute) → `request_channel` → the broker's handler →
`request.respond` → `processor` → `connection` (unmute). Start with `socket_server`, then `connection`.
"""

from ixion.broker.network.limits import NO_LIMIT, NetworkLimits
from ixion.broker.network.listener import BindError, BoundListener, Listener
from ixion.broker.network.request import LATER, Answer, Handler, Request
from ixion.broker.network.snapshot import ChannelSnapshot, NetworkSnapshot
from ixion.broker.network.socket_server import SocketServer

__all__ = [
    "LATER",
    "NO_LIMIT",
    "Answer",
    "BindError",
    "BoundListener",
    "ChannelSnapshot",
    "Handler",
    "Listener",
    "NetworkLimits",
    "NetworkSnapshot",
    "Request",
    "SocketServer",
]
