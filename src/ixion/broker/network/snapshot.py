"""The current state of the network, for metrics and views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class ChannelSnapshot(NamedTuple):
    name: str
    queued: int  # requests that wait for a handler
    waiting: int  # connections that wait for room in the queue
    busy: int  # handlers that wait for an awaitable


class NetworkSnapshot(NamedTuple):
    connections: Mapping[str, int]  # by listener
    addresses: int  # with a connection
    accepted: int
    closed: Mapping[str, int]  # by reason
    requests: int
    responses: int
    bytes_in: int
    bytes_out: int
    busy_polls: int
    busy_polls_in_vain: int
    channels: tuple[ChannelSnapshot, ...]
    queued_responses: int
    pool_size: int  # bytes; negative: no limit
    pool_used: int
    pool_waiting: int  # connections that wait for memory
    slow_readers: int  # connections with an unsent response
    unsent_bytes: int
