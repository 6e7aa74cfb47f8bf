"""Requests that only brokers may send: LeaderAndIsr, StopReplica and UpdateMetadata.

They are served only on the inter-broker listener and the control plane listener, and only if the metadata is in
ZooKeeper: a broker with an embedded tree is alone, and its controller needs no socket. Any other such request gets
CLUSTER_AUTHORIZATION_FAILED and changes nothing; it is logged once per address.
"""

from __future__ import annotations

import logging
from typing import Final

from ixion.broker.apis.call import Call
from ixion.broker.apis.services import Services
from ixion.config.cluster_settings import ZOOKEEPER_CONNECT
from ixion.config.listeners import listeners

logger = logging.getLogger(__name__)

MOST_ADDRESSES: Final = 1_000  # that are logged


class BetweenBrokers:
    def __init__(self, services: Services) -> None:
        config = services.config.current
        known = listeners(config)
        self._named: set[str] = set()  # addresses that were logged
        self._allowed = {known.inter_broker, known.control_plane} if config[ZOOKEEPER_CONNECT] else set()

    def admits(self, call: Call, name: str) -> bool:
        """Whether the request came through a listener for brokers."""
        if call.listener in self._allowed:
            return True
        address = call.address
        if address not in self._named and len(self._named) < MOST_ADDRESSES:
            self._named.add(address)
            logger.warning("%s from %s refused: listener %s is not for a controller", name, address, call.listener)
        return False
