"""A member of a streams group that behaves as a client: it sends heartbeats, takes the tasks that it gets and gives up
the rest. Internal topics that the group lacks are made as the broker makes them, and the heartbeat is sent again.
"""

from __future__ import annotations

from typing import Any

from ixion.broker.coordinators.group.caller import Caller
from ixion.broker.coordinators.group.streams.group import StreamsGroup
from ixion.broker.coordinators.group.streams.tasks import Task, grouped
from ixion.broker.coordinators.group.streams_protocol import Beat
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages import k88_streams_group_heartbeat as k88
from tests.apis.streams_group_kit import ids, request, subtopology, topic, topology
from tests.coordinators.group.kit import GROUP, Answer, MemoryTopics, World

STATEFUL = topology(
    subtopology("0", "t", sinks=("again",)),
    subtopology("1", repartition=(topic("again"),), changelogs=(topic("store"),)),
)


class Client:
    """`owned` is what the client runs. A client with `clings` gives nothing up."""

    def __init__(self, world: World, member_id: str, process: str = "", **fields: Any) -> None:
        self.world = world
        self.member_id = member_id
        self.fields: dict[str, Any] = {"topology": STATEFUL, "process_id": process or member_id, **fields}
        self.epoch = 0
        self.active: set[Task] = set()
        self.standby: set[Task] = set()
        self.clings = False
        self._told: set[Task] = set()
        self.last: k88.StreamsGroupHeartbeatResponse | None = None

    def send(self, **fields: Any) -> k88.StreamsGroupHeartbeatResponse:
        """A heartbeat with these fields, as they are; nothing is done with the answer."""
        beat = self._ask(fields)
        if beat.missing:
            for each in beat.missing:
                self.world.topics.put(each.name, each.partitions)
            beat = self._ask(fields)
        return beat.answer

    def join(self, **fields: Any) -> ErrorCode:
        self.epoch = 0
        self.active.clear()
        self.standby.clear()
        return self._take(self.send(**{**self.fields, **fields}))

    def beat(self) -> ErrorCode:
        if self.epoch <= 0:
            return self.join()
        return self._take(self.send(**self._owned(), **self._name()))

    def miss_an_answer(self) -> None:
        self.send(**self._owned(), **self._name())

    def leave(self, epoch: int = -1) -> ErrorCode:
        return ErrorCode(self.send(member_epoch=epoch, **self._name()).error_code)

    def let_go(self) -> None:
        self.clings = False
        self.active &= self._told

    def _name(self) -> dict[str, Any]:
        return {"instance_id": self.fields.get("instance_id")}

    def _owned(self) -> dict[str, Any]:
        kinds = {"active_tasks": self.active, "standby_tasks": self.standby, "warmup_tasks": set[Task]()}
        return {
            name: ids({part: tuple(sorted(numbers)) for part, numbers in grouped(tasks).items()})
            for name, tasks in kinds.items()
        }

    def _ask(self, fields: dict[str, Any]) -> Beat:
        answer = Answer()
        asked = request(GROUP, self.member_id, **{"epoch": fields.get("member_epoch", self.epoch), **fields})
        caller = Caller(version=0, client_id="client", host="/127.0.0.1")
        self.world.groups.streams.heartbeat(asked, caller, answer)
        self.world.run()
        assert isinstance(answer.given, Beat)
        return answer.given

    def _take(self, answer: k88.StreamsGroupHeartbeatResponse) -> ErrorCode:
        self.last = answer
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            self.epoch = answer.member_epoch
            if answer.active_tasks is not None:
                active, standby = tasks_of(answer.active_tasks), tasks_of(answer.standby_tasks)
                self._told = active
                self.active = self.active | active if self.clings else set(active)
                self.standby = standby - self.active
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
            self.active.clear()
            self.standby.clear()
            self.epoch = 0
        return code

    @property
    def statuses(self) -> list[int]:
        assert self.last is not None
        return [each.status_code for each in self.last.status or ()]


def tasks_of(kind: tuple[k88.TaskIds, ...] | None) -> set[Task]:
    return {(each.subtopology_id, number) for each in kind or () for number in each.partitions}


def world_of(partitions: int = 3, **settings: Any) -> World:
    at_once = {"group_streams_initial_rebalance_delay_ms": 0, "group_streams_assignment_interval_ms": 0}
    return World(topics=MemoryTopics(t=partitions), **{**at_once, **settings})


def group_of(world: World) -> StreamsGroup:
    assert isinstance(world.group, StreamsGroup)
    return world.group


def beat_all(*clients: Client, rounds: int = 4) -> None:
    for _ in range(rounds):
        for client in clients:
            assert client.beat() is ErrorCode.NONE
