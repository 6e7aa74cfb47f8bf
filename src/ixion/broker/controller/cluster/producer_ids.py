"""Blocks of producer ids for the brokers of the cluster (AllocateProducerIds). No id is ever in two blocks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from ixion.broker.controller.cluster.term import Term
from ixion.broker.metadata import paths
from ixion.broker.metadata.cluster_node import ProducerIdBlock, decode_producer_ids, encode_producer_ids
from ixion.broker.metadata.content import CorruptNodeError
from ixion.broker.metadata.errors import BadVersionError
from ixion.broker.metadata.node import Set
from ixion.language.model.errors import ErrorCode, KafkaError

BLOCK_SIZE: Final = 1000
MAX_PRODUCER_ID: Final = 2**63 - 1

logger = logging.getLogger(__name__)


class ProducerIdBlocks:
    def __init__(self, active: Callable[[], Term]) -> None:
        self._active = active

    async def allocate(self, broker: int, epoch: int) -> ProducerIdBlock:
        """The next block, for that broker alone. KafkaError if the broker epoch is stale or the ids cannot be read."""
        term = self._active()
        return await term.run(lambda: allocate(term, broker, epoch))


async def allocate(term: Term, broker: int, epoch: int) -> ProducerIdBlock:
    member = term.cluster.brokers.get(broker)
    if member is None:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED)
    if member.epoch != epoch:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
    while True:
        node = await term.session.get(paths.PRODUCER_IDS)
        try:
            first = decode_producer_ids(node.data).last + 1 if node.data else 0
        except CorruptNodeError as error:  # beginning at 0 again would give two producers the same id
            logger.error("no producer ids are given while %s is garbage: %s", paths.PRODUCER_IDS, error)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{paths.PRODUCER_IDS} cannot be read") from error
        if first > MAX_PRODUCER_ID - BLOCK_SIZE:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"no producer ids are left after {first - 1}")
        block = ProducerIdBlock(broker_id=broker, first=first, last=first + BLOCK_SIZE - 1)
        try:
            await term.tree.write([Set(paths.PRODUCER_IDS, encode_producer_ids(block), node.stat.version)])
        except BadVersionError:
            continue  # a broker of an earlier protocol has taken a block itself
        return block
