"""The fetchers of this broker: num.replica.fetchers for each leader, which share its partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from concurrent.futures import Executor

from ixion.broker.metadata.image import ClusterImage
from ixion.broker.replica.fetch_requests import FetchLimits
from ixion.broker.replica.fetcher import Fetcher, FetcherSettings
from ixion.broker.replica.manager import ReplicaManager
from ixion.broker.replica.partition import Partition
from ixion.broker.replica.siblings import Copied, follow_sibling
from ixion.clients.address import Address
from ixion.clients.channel import Connect, connect
from ixion.config import replica_settings as replica
from ixion.config.broker import BrokerConfig
from ixion.language.model.placement import java_hash
from ixion.language.model.topic_partition import TopicPartition


class FetcherPool:
    """Implements `ixion.broker.replica.control.Fetchers`. Make and use it on one loop."""

    def __init__(
        self,
        replicas: ReplicaManager,
        image: ClusterImage,
        *,
        listener: str,
        broker_epoch: Callable[[], int],
        config: Callable[[], BrokerConfig],
        workers: Executor,
        connect: Connect = connect,
    ) -> None:
        """`listener`: the name of the listener between brokers."""
        self._replicas = replicas
        self._image = image
        self._listener = listener
        self._broker_epoch = broker_epoch
        self._config = config
        self._workers = workers
        self._connect = connect
        self._fetchers: dict[tuple[int, int], Fetcher] = {}  # by leader and number
        self._homes: dict[TopicPartition, tuple[int, int]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._leaving = False

    @property
    def followed(self) -> Collection[TopicPartition]:
        return self._homes.keys()

    def max_lag(self) -> int:
        """The lag, in records, of the partition that is furthest behind, as of its last fetch."""
        return max((fetcher.max_lag() for fetcher in self._fetchers.values()), default=0)

    def leave(self) -> None:
        """Follow nothing new, because this broker stops. If a follower that has just caught up left, the leader would
        hold its high watermark back for it, for replica.lag.time.max.ms or more."""
        self._leaving = True

    def start(self, partition: Partition) -> None:
        if self._leaving:
            return
        home = (partition.leader_id, self._number_of(partition.key))
        fetcher = self._fetchers.get(home)
        if fetcher is None:
            fetcher = self._fetchers[home] = self._make(*home)
        self._homes[partition.key] = home
        fetcher.add(partition, follow_sibling(self._replicas, partition))

    def reconfigured(self, partition: Partition) -> None:
        """The settings of a partition have changed: from now on it may have delayed records."""
        home = self._homes.get(partition.key)
        if home is not None and not isinstance(partition.schedule, Copied):
            sibling = follow_sibling(self._replicas, partition)
            if sibling is not None:
                self._fetchers[home].add_sibling(partition, sibling)

    async def stop(self, keys: Collection[TopicPartition]) -> None:
        homes: dict[tuple[int, int], list[TopicPartition]] = {}
        for key in keys:
            home = self._homes.pop(key, None)
            if home is not None:
                homes.setdefault(home, []).append(key)
        # A failed disk stops its partitions while the controller stops others, so a fetcher may end in between.
        fetchers = {home: self._fetchers[home] for home in homes}
        for home, gone in homes.items():
            await fetchers[home].remove(gone)
        used = set(self._homes.values())
        for home, fetcher in fetchers.items():
            if home in used or self._fetchers.get(home) is not fetcher:
                continue
            del self._fetchers[home]
            task = asyncio.get_running_loop().create_task(fetcher.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """For good: a request of the controller that is being carried out must not start a fetcher that nobody ends."""
        self._leaving = True
        fetchers = list(self._fetchers.values())
        self._fetchers.clear()
        self._homes.clear()
        await asyncio.gather(*(fetcher.close() for fetcher in fetchers), *self._closing)

    def _number_of(self, key: TopicPartition) -> int:
        topic, number = key
        return abs(31 * java_hash(topic) + number) % self._config()[replica.NUM_REPLICA_FETCHERS]

    def _make(self, leader: int, number: int) -> Fetcher:
        def address() -> Address | None:
            broker = self._image.brokers.get(leader)
            found = None if broker is None else broker.endpoints.get(self._listener)
            return None if found is None else Address(*found)

        return Fetcher(
            f"broker-{self._replicas.node_id}-fetcher-{number}",
            self._replicas,
            address_of_leader=address,
            connect=self._connect,
            broker_epoch=self._broker_epoch,
            settings=self._settings,
            workers=self._workers,
        )

    def _settings(self) -> FetcherSettings:
        config = self._config()
        return FetcherSettings(
            limits=FetchLimits(
                max_wait_ms=config[replica.REPLICA_FETCH_WAIT_MAX_MS],
                min_bytes=config[replica.REPLICA_FETCH_MIN_BYTES],
                max_bytes=config[replica.REPLICA_FETCH_RESPONSE_MAX_BYTES],
            ),
            partition_bytes=config[replica.REPLICA_FETCH_MAX_BYTES],
            backoff_s=config[replica.REPLICA_FETCH_BACKOFF_MS] / 1_000,
            request_timeout_s=config[replica.REPLICA_SOCKET_TIMEOUT_MS] / 1_000,
        )
