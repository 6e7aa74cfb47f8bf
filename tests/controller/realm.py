"""A controller without a broker, over a tree and logs that outlive its crashes.

Use it for changes of topics, leaders and settings, and for what the next start makes of a crash. It stands on
`tests/replica/world.py`, which has the logs and replicas.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ixion.broker.controller.controller import Controller
from ixion.broker.controller.own_broker import OwnBroker
from ixion.broker.controller.planning import NewTopic
from ixion.broker.controller.topics import TopicOutcome
from ixion.broker.metadata import paths
from ixion.broker.metadata.cluster_node import decode_controller_epoch
from ixion.broker.metadata.config_node import read_config
from ixion.broker.metadata.embedded import EmbeddedStore
from ixion.broker.metadata.ensure import ensure
from ixion.broker.metadata.image import BrokerImage, ClusterImage
from ixion.broker.metadata.on_loop import EmbeddedEngine, LoopSession
from ixion.broker.metadata.topic_node import decode_partition_state
from ixion.broker.replica.control import Control
from ixion.broker.startup.own_disks import OwnDisks, propose_isr_to
from ixion.config.dynamic import DynamicConfig
from ixion.language.model.errors import ErrorCode
from tests.replica.world import SELF, World

T = TypeVar("T")


class Realm:
    def __init__(
        self, path: Path, settings: Mapping[str, str] | None = None, brokers: tuple[int, ...] = (SELF,)
    ) -> None:
        self.path = path
        self._settings = settings or {}
        self._brokers = brokers
        self._open()

    def _open(self) -> None:
        self.world = World(self.path)
        self.store = EmbeddedStore(str(self.path / "metadata.sqlite"))
        self.session = self.store.open_session(60_000)
        self.engine = self.run(self._engine())
        session = LoopSession(self.engine, self.session)
        self.run(ensure(session, paths.BASE))
        self.image = ClusterImage(cluster_id="c")
        for number in self._brokers:
            self.image.brokers[number] = BrokerImage(broker_id=number, epoch=1, endpoints={"PLAINTEXT": ("h", 1)})
        config = DynamicConfig(self._settings)
        replicas, logs = self.world.replicas, self.world.logs
        self.workers = ThreadPoolExecutor(1)
        self.control = Control(
            self.image,
            replicas,
            logs,
            broker_epoch=lambda: 1,
            last_controller_epoch=partial(last_controller_epoch, session),
            read_config=partial(read_config, session, "topics"),
            workers=self.workers,
        )
        own = OwnBroker(SELF, self.image, self.control, OwnDisks(replicas, logs))
        self.controller = Controller(session, self.image, own, config, self.world.now_ms)
        propose_isr_to(replicas, self.controller.leaders.change_isr)

    async def _engine(self) -> EmbeddedEngine:
        return EmbeddedEngine(self.store)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.world.loop.run_until_complete(asyncio.wait_for(work, 20))

    def start(self, unclean: bool = False) -> None:
        self.run(self.controller.start(unclean))

    def crash(self) -> None:
        """All that was in memory is gone; what is on disk is found again, but not used yet."""
        self.close()
        self._open()

    def close(self) -> None:
        self.run(self.controller.stop())
        self.workers.shutdown()
        self.world.close()
        self.engine.close()

    def folders(self) -> list[str]:
        """Of the logs, without the marks that make them unique."""
        names = [entry.name for path in self.world.paths for entry in Path(path).iterdir() if entry.is_dir()]
        return sorted(name.partition(".")[0] + ("-" + name.rpartition("-")[2] if "." in name else "") for name in names)


async def last_controller_epoch(session: LoopSession) -> int:
    return decode_controller_epoch((await session.get(paths.CONTROLLER_EPOCH)).data)


def create(realm: Realm, *wishes: NewTopic, validate_only: bool = False) -> list[TopicOutcome]:
    return realm.run(realm.controller.topics.create(wishes, validate_only))


def delete(realm: Realm, *names: str) -> list[ErrorCode]:
    return [outcome.code for outcome in realm.run(realm.controller.topics.delete(names))]


def state(realm: Realm, name: str = "t", number: int = 0) -> tuple[int, int]:
    """(leader, leader epoch) as the tree has them."""
    found = decode_partition_state(name, number, realm.session.get(paths.partition_state(name, number)).data)
    return found.leader, found.leader_epoch
