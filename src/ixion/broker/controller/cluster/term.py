"""The time in which this broker is the controller: its view, its access to the tree and to the brokers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ixion.broker.controller.cluster.batch import Batch, ControlRequest, Sender
from ixion.broker.controller.cluster.channels import Carrier, Channels, ControlResponse
from ixion.broker.controller.cluster.cluster import Cluster, Member, Replica
from ixion.broker.controller.cluster.deletions import Deletions
from ixion.broker.controller.cluster.fenced_tree import DeposedError, FencedTree
from ixion.broker.controller.cluster.figures import ControllerFigures
from ixion.broker.controller.queue import ChangeQueue
from ixion.broker.metadata.config_node import read_config
from ixion.broker.metadata.content import CorruptNodeError
from ixion.broker.metadata.errors import SessionExpiredError, TooLargeError
from ixion.config.dynamic import DynamicConfig
from ixion.config.replica_settings import UNCLEAN_LEADER_ELECTION_ENABLE
from ixion.config.topic import TopicConfig
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.timer.turns import in_turns

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Term:
    def __init__(
        self,
        tree: FencedTree,
        sender: Sender,
        config: DynamicConfig,
        make_carrier: Callable[[Member], Carrier],
        on_answer: Callable[[Term, int, ControlRequest, ControlResponse], None],
        figures: ControllerFigures | None = None,
    ) -> None:
        """`on_answer` is called with every answer of a broker; it may ask for a change."""
        self.figures = figures or ControllerFigures()
        self.tree = tree
        self.session = tree.session
        self.sender = sender
        self.config = config
        self.cluster = Cluster()
        self.queue = ChangeQueue()
        self.channels = Channels(make_carrier, lambda *answer: on_answer(self, *answer))
        self.deletions = Deletions()
        self.watches: list[Callable[[], None]] = []  # cancelled at the end of the term
        self.on_deposed: Callable[[str], None] = lambda _: None  # called when another controller was elected
        self.on_failed: Callable[[str], None] = lambda _: None  # called when a change failed half-way
        self.bring_back: Callable[[Term], Coroutine[Any, Any, None]] = _nothing  # see `once_answered`
        self.silent: set[int] = set()  # brokers that do not answer, and are asked again and again
        self.absent: set[int] = set()  # brokers that are gone, and that partitions without a leader wait for
        self.asked: dict[Replica, int] = {}  # to delete logs (`leftovers`), with the leader epoch of the request
        self.min_isr: Callable[[str], int] = lambda _topic: 1  # min.insync.replicas of a topic
        self._waiting: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, change: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What `change` returns, after all changes before it. KafkaError NOT_CONTROLLER if the term is over.

        After a change that fails half-way, the controller's view differs from the tree or the brokers, so it resigns;
        the next controller starts from the tree.
        """

        async def guarded() -> T:  # runs in the queue: the caller may be gone when it fails
            try:
                return await change()
            except (DeposedError, SessionExpiredError) as error:
                self.close()  # the view may be half made: a change that waits must not go by it
                self.on_deposed(str(error))
                raise KafkaError(ErrorCode.NOT_CONTROLLER, str(error)) from error
            except (KafkaError, TooLargeError):
                raise  # it was refused
            except Exception as error:
                self.close()
                self.on_failed(str(error))
                raise

        return await self.queue.run(guarded)

    def soon(self, name: str, change: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `change` after all changes before it, unless one of this name already waits."""
        if name in self._waiting:
            return
        self._waiting.add(name)

        async def begin() -> None:
            self._waiting.discard(name)
            await change()

        async def watched() -> None:
            try:
                await self.run(begin)
            except KafkaError as error:
                if error.code is not ErrorCode.NOT_CONTROLLER:
                    raise
            except Exception:
                logger.exception("the controller could not follow a change (%s), so it resigns", name)

        self._keep(watched())

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def once_answered(self, broker: int) -> None:
        """Run `bring_back` when the broker says again where its logs end, or is gone; until then it is in `silent`."""
        self.silent.add(broker)

        async def wait() -> None:
            await self.channels.reachable(broker)
            self.silent.discard(broker)
            self.soon(f"broker {broker} answers", lambda: self.bring_back(self))

        self._keep(wait())

    def batch(self) -> Batch:
        return Batch(self.cluster)

    async def send(self, batch: Batch) -> None:
        """Give the requests of a change to the channels."""
        if batch.is_empty:
            return
        for broker, requests in (await in_turns(batch.requests(self.sender))).items():
            for request in requests:
                self.channels.send(broker, request)

    async def is_unclean_allowed(self, topic: str) -> bool:
        """Whether a replica outside the ISR may lead a partition of this topic."""
        try:
            given = await read_config(self.session, "topics", topic)
        except CorruptNodeError:
            return False
        allowed: bool = TopicConfig.stored(self.config.current, given)[UNCLEAN_LEADER_ELECTION_ENABLE]
        return allowed

    def close(self) -> None:
        """Write nothing from now on, and refuse waiting changes."""
        self.tree.close()
        self.queue.stop()
        for cancel in self.watches:
            cancel()
        self.watches.clear()

    async def end(self) -> None:
        """Returns when the running change has ended and nothing is sent any more."""
        self.close()
        self.deletions.close()
        async with self.queue.turn:
            await self.channels.close_all()


async def _nothing(term: Term) -> None:
    pass
