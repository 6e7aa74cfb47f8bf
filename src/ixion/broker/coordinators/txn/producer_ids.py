"""Producer ids: numbers that the cluster never gives out twice.

A broker claims them in blocks of a thousand by raising `/latest_producer_id_block`, and hands them out from memory:

    the node says 2000 .. 2999  ->  claim writes 3000 .. 3999  ->  3000, 3001, 3002, ...

The rest of a block is lost when the broker stops; there are 2**63 ids. Claiming waits for a disk or a network, so it
runs in the background, ahead of need: when nine tenths of a block are used, the next one is claimed. A client waits
only at the very beginning, or if the store is slow (`wait`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from ixion.broker.metadata import paths
from ixion.broker.metadata.cluster_node import ProducerIdBlock, decode_producer_ids, encode_producer_ids
from ixion.broker.metadata.errors import BadVersionError, MetadataError, StoreUnusableError
from ixion.broker.metadata.session import MetadataSession
from ixion.language.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

logger = logging.getLogger(__name__)

BLOCK_SIZE: Final = 1000
ASK_BELOW: Final = BLOCK_SIZE // 10  # ids left when the next block is claimed
MAX_PRODUCER_ID: Final = 2**63 - 1

Claimed = ProducerIdBlock | Exception
Claiming = Coroutine[Any, Any, ProducerIdBlock]
Claim = Callable[[int], Claiming]
# Runs the claim and calls the second argument with the outcome.
Background = Callable[[Callable[[], Claiming], Callable[[Claimed], None]], None]


async def claim_block(session: MetadataSession, broker_id: int, lowest: int = 0) -> ProducerIdBlock:
    """The next block, for this broker alone, none of it below `lowest`."""
    while True:
        node = await session.get(paths.PRODUCER_IDS)
        first = decode_producer_ids(node.data).last + 1 if node.data else 0
        first = max(first, -(-lowest // BLOCK_SIZE) * BLOCK_SIZE)
        if first > MAX_PRODUCER_ID - BLOCK_SIZE:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"no producer ids are left after {first - 1}")
        block = ProducerIdBlock(broker_id=broker_id, first=first, last=first + BLOCK_SIZE - 1)
        try:
            await session.set(paths.PRODUCER_IDS, encode_producer_ids(block), node.stat.version)
        except BadVersionError:
            continue  # another broker was faster: claim the block after its block
        return block


def as_task(loop: AbstractEventLoop) -> Background:
    """Claims as tasks of the loop."""

    async def run(claim: Callable[[], Claiming], then: Callable[[Claimed], None]) -> None:
        outcome: Claimed
        try:
            outcome = await claim()
        except Exception as error:
            outcome = error
        then(outcome)

    def background(claim: Callable[[], Claiming], then: Callable[[Claimed], None]) -> None:
        task = loop.create_task(run(claim, then))
        running.add(task)
        task.add_done_callback(running.discard)

    running: set[object] = set()  # the loop keeps only weak references to its tasks
    return background


class ProducerIds:
    def __init__(self, claim: Claim, background: Background, lowest: Callable[[], int] = lambda: 0) -> None:
        """`lowest` is called before the first claim: logs may have producer ids that the tree does not know."""
        self._claim = claim
        self._background = background
        self._lowest = lowest
        self._next = 0
        self._end = 0  # the first id that is not ours
        self._ahead: ProducerIdBlock | None = None
        self._asking = False
        self._waiting: list[Callable[[ErrorCode], None]] = []

    def take(self) -> int:
        """The next id. KafkaError (COORDINATOR_LOAD_IN_PROGRESS: retry) if none is available."""
        if self._next == self._end:
            self._open_next()
        if self._next == self._end:
            self._ask()
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the next block of producer ids is being claimed")
        taken = self._next
        self._next += 1
        if self._end - self._next < ASK_BELOW and self._ahead is None:
            self._ask()
        return taken

    @property
    def ready(self) -> bool:
        return self._next < self._end or self._ahead is not None

    def wait(self, then: Callable[[ErrorCode], None]) -> None:
        """Calls `then` with NONE as soon as there are ids, or with COORDINATOR_NOT_AVAILABLE if the claim fails."""
        if self.ready:
            then(ErrorCode.NONE)
            return
        self._waiting.append(then)
        self._ask()

    def _open_next(self) -> None:
        block, self._ahead = self._ahead, None
        if block is not None:
            self._next, self._end = block.first, block.last + 1

    def _ask(self) -> None:
        if not self._asking:
            self._asking = True
            lowest = self._lowest() if self._end == 0 else 0
            self._background(lambda: self._claim(lowest), self._claimed)

    def _claimed(self, outcome: Claimed) -> None:
        self._asking = False
        waiting, self._waiting = self._waiting, []
        code = ErrorCode.NONE
        if isinstance(outcome, ProducerIdBlock):
            self._ahead = outcome
        else:
            # A claim fails while the tree or the controller is away, or when the session expires; clients ask again.
            away = isinstance(outcome, MetadataError | StoreUnusableError | KafkaError)
            logger.error("no block of producer ids could be claimed: %s", outcome, exc_info=None if away else outcome)
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        for then in waiting:
            then(code)
