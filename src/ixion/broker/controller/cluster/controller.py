"""The controller of several brokers: elected on `/controller`, it leads for a term, and stands by otherwise.

A broker that is not elected watches `/controller` and tries again when that node goes. A controller resigns when
another broker is elected, when its session expires, or when a change fails half-way. Its term ends before anything else
happens: no queued change is written any more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from ixion.broker.controller.cluster.answers import answered
from ixion.broker.controller.cluster.batch import Sender
from ixion.broker.controller.cluster.broker_changes import bring_back, follow_brokers
from ixion.broker.controller.cluster.channels import Carrier
from ixion.broker.controller.cluster.cluster import Member
from ixion.broker.controller.cluster.disks import follow_failed_disks
from ixion.broker.controller.cluster.fenced_tree import FencedTree
from ixion.broker.controller.cluster.figures import ControllerFigures
from ixion.broker.controller.cluster.isr import IsrChanges
from ixion.broker.controller.cluster.leaders import ClusterLeaders, balance
from ixion.broker.controller.cluster.producer_ids import ProducerIdBlocks
from ixion.broker.controller.cluster.reassignments import ClusterReassignments
from ixion.broker.controller.cluster.take_over import take_over
from ixion.broker.controller.cluster.term import Term
from ixion.broker.controller.cluster.topics import ClusterTopics
from ixion.broker.controller.configs import Configs
from ixion.broker.controller.election import Elected, elect
from ixion.broker.controller.queue import ChangeQueue
from ixion.broker.metadata import paths
from ixion.broker.metadata.content import CorruptNodeError
from ixion.broker.metadata.errors import MetadataError
from ixion.broker.metadata.image import ClusterImage
from ixion.broker.metadata.node import Delete
from ixion.broker.metadata.session import Cancel, Event, MetadataSession
from ixion.config.dynamic import DynamicConfig
from ixion.config.replica_settings import MIN_INSYNC_REPLICAS
from ixion.config.topic import TopicConfig
from ixion.language.model.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

PAUSE_S: Final = 1.0  # after a take-over or a change that failed, before this broker tries to be elected again


class ClusterController:
    def __init__(
        self,
        node_id: int,
        session: MetadataSession,
        image: ClusterImage,
        config: DynamicConfig,
        clock_ms: Callable[[], int],
        *,
        carrier_to: Callable[[Member], Carrier],
        listener: str,
    ) -> None:
        """`carrier_to` makes the carrier to a broker; `listener` is the one between brokers."""
        self.node_id = node_id
        self.figures = ControllerFigures()
        self._session = session
        self._image = image
        self._config = config
        self._clock_ms = clock_ms
        self._carrier_to = carrier_to
        self._listener = listener
        self._term: Term | None = None
        self._runner: asyncio.Task[None] | None = None
        self._stirred = asyncio.Event()
        self._failed = False
        self._unclean = False
        self._cancel_watch: Cancel = lambda: None
        self._own_queue = ChangeQueue()  # for settings: any broker may change them
        self.topics = ClusterTopics(self.active)
        self.leaders = ClusterLeaders(self.active)
        self.isr = IsrChanges(self.active)
        self.producer_ids = ProducerIdBlocks(self.active)
        self.reassignments = ClusterReassignments(self.active)
        self.configs = Configs(self._own_queue, session, image, self.active)

    def active(self) -> Term:
        """The present term; KafkaError if this broker is not the controller."""
        if self._term is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "this broker is not the controller")
        return self._term

    @property
    def is_active(self) -> bool:
        return self._term is not None

    async def start(self, unclean: bool) -> None:
        """Take part in the election. `unclean`: this broker did not stop cleanly (see `take_over`)."""
        self._unclean = unclean
        await self.begin(self._session)
        if self._term is not None:  # partitions of this broker go online before it serves clients
            await self._term.channels.settled(self.node_id)

    async def begin(self, session: MetadataSession) -> None:
        """Take part in the election with a session; returns when there is a controller."""
        self._session = self.configs.session = session
        self._cancel_watch = session.watch(paths.CONTROLLER, lambda _: self._stirred.set())
        session.on_expired(lambda: self._session_expired(session))
        try:
            await self._look()
        except CorruptNodeError as error:  # without this a broker would not even register
            logger.error("no controller is known: %s", error)
            self._stirred.set()
        self._runner = asyncio.get_running_loop().create_task(self._run())

    async def end(self) -> None:
        """Resign, if this broker is the controller, and take part in no election. Await this before another session is
        opened: then queued changes of the earlier term are refused."""
        self._cancel_watch()
        if self._term is not None:
            self._term.close()
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.cancel()
            await asyncio.gather(runner, return_exceptions=True)
        await self._end_term()

    async def stop(self) -> None:
        await self.end()
        self._own_queue.stop()

    def balance_soon(self) -> None:
        """Move leadership back to preferred replicas. Does nothing if this broker is not the controller."""
        term = self._term
        if term is not None:
            term.soon("balance", lambda: balance(term))

    def elect_soon(self) -> None:
        """Settings have changed that allow unclean elections: elect leaders where there are none. Does nothing if this
        broker is not the controller: that one follows the change, too."""
        term = self._term
        if term is not None:
            term.soon("unclean elections are allowed", lambda: bring_back(term))

    # The election.

    async def _run(self) -> None:
        while True:
            await self._stirred.wait()
            if self._failed:
                self._failed = False
                await self._resign()
                await asyncio.sleep(PAUSE_S)
            self._stirred.clear()
            try:
                await self._look()
            except Exception as error:  # the task must go on: otherwise this broker would never be elected again
                expected = isinstance(error, (MetadataError, KafkaError, CorruptNodeError))
                logger.warning("the election of the controller is repeated: %s", error, exc_info=not expected)
                await asyncio.sleep(PAUSE_S)
                self._stirred.set()

    async def _look(self) -> None:
        """Become the controller if there is none; resign if there is another one."""
        elected = await elect(self._session, self.node_id, self._clock_ms())
        own = elected.owner == self._session.session_id
        term = self._term
        if term is not None and (not own or elected.epoch != term.sender.controller_epoch):
            logger.warning("broker %d is the controller now; this one resigns", elected.controller_id)
            await self._end_term()
            term = None
        if own and term is None:
            await self._lead(elected)

    async def _lead(self, elected: Elected) -> None:
        tree = FencedTree(self._session, elected.epoch, elected.epoch_version)
        sender = Sender(controller_id=self.node_id, controller_epoch=elected.epoch, listener=self._listener)
        term = Term(tree, sender, self._config, self._carrier_to, answered, self.figures)
        self.figures.terms += 1
        term.on_deposed = lambda _: self._stirred.set()
        term.on_failed = lambda _: self._fail(term)
        term.bring_back = bring_back
        term.min_isr = self._min_isr
        self._watch(term)
        self._term = term  # requests wait in its queue until the take-over is done
        unclean, self._unclean = self._unclean, False
        try:
            await term.run(lambda: take_over(term, unclean))
        except KafkaError as error:
            logger.warning("another controller was elected meanwhile: %s", error)
        except Exception:
            logger.exception("the controller could not take over, so it resigns")
            self._fail(term)

    def _min_isr(self, topic: str) -> int:
        given = self._image.topic_config(topic)
        settings = self._config.current
        found: int = (TopicConfig.stored(settings, given) if given else settings)[MIN_INSYNC_REPLICAS]
        return found

    def _watch(self, term: Term) -> None:
        """Watch the tree before it is read, so that no change in between is missed."""
        events: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            paths.BROKERS: lambda: follow_brokers(term),
            paths.TOPICS: lambda: self.topics.follow(term),
            paths.DELETE_TOPICS: lambda: self.topics.follow_deletions(term),
            paths.LOG_DIR_EVENTS: lambda: follow_failed_disks(term),
        }
        for path, work in events.items():
            term.watches.append(self._session.watch(path, soon(term, path, work)))

    # The end of a term.

    def _fail(self, term: Term) -> None:
        if term is self._term:
            self._failed = True
            self._stirred.set()

    def _session_expired(self, session: MetadataSession) -> None:
        """ZooKeeper has deleted `/controller`: write nothing more, even before the term has ended."""
        if session is self._session and self._term is not None:
            self._term.close()

    async def _end_term(self) -> None:
        term = self._term
        if term is not None:
            await term.end()  # if this is cancelled, `_term` stays set and can be ended again
            self._term = None

    async def _resign(self) -> None:
        """End the term and delete `/controller`, so that another broker can try."""
        term = self._term
        await self._end_term()
        if term is not None:
            fenced = FencedTree(term.session, term.tree.controller_epoch, term.tree.epoch_version)
            try:
                await fenced.write([Delete(paths.CONTROLLER)])
            except Exception as error:
                logger.warning("%s could not be deleted: %s", paths.CONTROLLER, error)


def soon(term: Term, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[Event], None]:
    def stirred(_event: Event) -> None:
        term.soon(name, work)

    return stirred
