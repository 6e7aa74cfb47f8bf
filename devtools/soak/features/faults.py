"""What disturbs the cases of a phase, again and again until its time is up."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final, Protocol

from devtools.soak.features.case import PARTITIONS
from devtools.soak.features.factors import CHANGES
from devtools.soak.proxy import Faults, Proxies
from devtools.soak.small_machine import Machine
from ixion.clients import Admin, TopicPartition
from ixion.clients.admin.configs import Resource
from ixion.clients.admin.replicas import BrokerReplica
from ixion.language.model.errors import KafkaError
from ixion.language.model.resource_type import ResourceType

SPOILED: Final = Faults(cut=0.02, drop=0.02, delay=0.02)
PAUSE_S: Final = (0.5, 3.0)  # between two
DIRECTORIES: Final = ("a", "b")  # of each broker


class Cases(Protocol):
    @property
    def topics(self) -> list[str]: ...
    def replace_one(self) -> None: ...


class Disturber:
    def __init__(self, machine: Machine, proxies: Proxies, cases: Cases, chance: random.Random) -> None:
        self._machine = machine
        self._proxies = proxies
        self._cases = cases
        self._chance = chance
        self.done = 0
        self.refused = 0  # changes by an administrator, such as those that met another one

    def run(self, fault: str, seconds: float) -> None:
        end_s = time.monotonic() + seconds
        act: Callable[[], None] | None = getattr(self, f"_{fault.replace('-', '_')}", None)
        while time.monotonic() < end_s:
            time.sleep(min(self._chance.uniform(*PAUSE_S), max(end_s - time.monotonic(), 0)))
            if act is not None:  # `none` and `trim` leave the brokers alone
                act()
                self.done += 1
        if fault == "reassign":
            self._restore()

    def _any(self) -> int:
        return self._chance.choice(self._machine.brokers)

    def _kill(self) -> None:
        broker = self._any()
        self._machine.kill(broker)
        time.sleep(self._chance.choice((0.0, 0.5, 5.0)))  # with 5 s its session expires
        self._machine.start_brokers(broker)

    def _restart(self) -> None:
        broker = self._any()
        self._machine.stop_brokers(broker)
        self._machine.start_brokers(broker)

    def _pause(self) -> None:
        with self._machine.paused(self._any()):
            time.sleep(self._chance.choice((0.5, 2.5, 6.0)))

    def _clients(self) -> None:
        self._cases.replace_one()

    def _spoil(self) -> None:
        with self._proxies.spoiled(SPOILED, self._chance):
            time.sleep(self._chance.uniform(1.0, 4.0))

    def _cut(self) -> None:
        with self._proxies.shut(self._machine.tree_ports[self._any()]):
            time.sleep(self._chance.choice((0.5, 3.0, 7.0)))

    # By an administrator.

    def _try(self, change: Callable[[Admin], object]) -> None:
        try:
            with Admin(self._machine.bootstrap, default_api_timeout_ms=10_000) as admin:
                change(admin)
        except KafkaError:
            self.refused += 1

    def _place(self) -> TopicPartition:
        return TopicPartition(self._chance.choice(self._cases.topics), self._chance.randrange(PARTITIONS))

    def _move(self) -> None:
        broker = self._any()
        where = str(self._machine.data(broker) / self._chance.choice(DIRECTORIES))
        replica = BrokerReplica(self._place(), broker)
        self._try(lambda admin: admin.alter_replica_log_dirs({replica: where}).check())

    def _settings(self) -> None:
        resource = Resource(ResourceType.TOPIC, self._chance.choice(self._cases.topics))
        change = self._chance.choice(CHANGES)
        self._try(lambda admin: admin.alter_configs({resource: dict(change)}).check())

    def _reassign(self) -> None:
        place = self._place()
        count = self._chance.choice((2, 3, 3))
        brokers = self._chance.sample(self._machine.brokers, count)
        self._try(lambda admin: admin.alter_partition_reassignments({place: brokers}).check())
        if self._chance.random() < 0.3:
            self._try(lambda admin: admin.elect_leaders([place]))

    def _restore(self) -> None:
        for topic in self._cases.topics:
            for number in range(PARTITIONS):
                wanted = {TopicPartition(topic, number): self._machine.brokers}

                def change(admin: Admin, wanted: dict[TopicPartition, tuple[int, ...]] = wanted) -> object:
                    return admin.alter_partition_reassignments(wanted).check()

                self._try(change)
