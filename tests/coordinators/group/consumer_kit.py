"""A member of the consumer protocol that behaves as a client: it sends heartbeats, takes what it is assigned and gives
up the rest.

Use it on a `World` of `kit` where a test is about epochs, assignments and migration, and not about one request. For
members of the classic protocol there is `eager_kit`, for real clients `members`.
"""

from __future__ import annotations

from typing import Any

from ixion.broker.acl.rights import Rights
from ixion.broker.coordinators.group.caller import Caller
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from tests.coordinators.group.kit import GROUP, Answer, MemoryTopics, World

Partition = tuple[str, int]


class Client:
    """`owned` is what the client reads, by name, and `since` the epochs at which it got each.

    A client with `clings` gives nothing up. One that is `terse` says what it has when that has changed, as
    Kafka's own do.
    """

    def __init__(self, world: World, member_id: str, *topics: str, **fields: Any) -> None:
        self.world = world
        self.member_id = member_id
        self.epoch = 0
        self.owned: set[Partition] = set()
        self.since: dict[Partition, int] = {}
        self.rights: Rights | None = None
        self.clings = False
        self.terse = False
        self._said: set[Partition] | None = None
        self._told: set[Partition] = set()
        self.missed_an_answer = False
        self.topics = topics
        self.fields = fields
        self.last: ConsumerGroupHeartbeatResponse | None = None

    def send(self, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """A heartbeat with these fields, as they are; nothing is done with the answer."""
        answer = Answer()
        version = fields.pop("version", 1)
        given = {"member_id": self.member_id, "member_epoch": self.epoch, **fields}
        request = ConsumerGroupHeartbeatRequest(group_id=GROUP, **given)
        caller = Caller(version=version, client_id="client", host="/127.0.0.1", rights=self.rights)
        self.world.groups.consumer.heartbeat(request, caller, answer)
        self.world.run()
        assert answer.given is not None
        assert isinstance(answer.given, ConsumerGroupHeartbeatResponse)
        return answer.given

    def join(self, **fields: Any) -> ErrorCode:
        self.epoch = 0
        self.owned.clear()
        self._said = None
        return self._take(self.send(**{**self._everything(), "topic_partitions": (), **fields}))

    def beat(self, **fields: Any) -> ErrorCode:
        """After a missed answer the client sends its whole state, and gets its whole assignment."""
        more = self._everything() if self.missed_an_answer else {}
        is_news = not self.terse or self.missed_an_answer or self.owned != self._said
        self._said = set(self.owned)
        return self._take(self.send(topic_partitions=self._owned() if is_news else None, **{**more, **fields}))

    def miss_an_answer(self) -> None:
        """What the broker says to a heartbeat does not arrive."""
        self.send(topic_partitions=self._owned(), instance_id=self.fields.get("instance_id"))
        self.missed_an_answer = True

    def let_go(self) -> None:
        self.clings = False
        self.owned &= self._told

    def leave(self, epoch: int = -1) -> ErrorCode:
        return ErrorCode(self.send(member_epoch=epoch, instance_id=self.fields.get("instance_id")).error_code)

    def _everything(self) -> dict[str, Any]:
        names = {} if "subscribed_topic_regex" in self.fields else {"subscribed_topic_names": self.topics}
        return {"rebalance_timeout_ms": 60_000, **names, **self.fields}

    def _owned(self) -> tuple[TopicPartitions, ...]:
        by_topic: dict[str, list[int]] = {}
        for name, number in sorted(self.owned):
            by_topic.setdefault(name, []).append(number)
        return tuple(
            TopicPartitions(topic_id=topic_id(self.world, name), partitions=tuple(numbers))
            for name, numbers in by_topic.items()
        )

    def _take(self, answer: ConsumerGroupHeartbeatResponse) -> ErrorCode:
        self.last = answer
        self.missed_an_answer = False
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            assert answer.member_id
            self.member_id, self.epoch = answer.member_id, answer.member_epoch
            if answer.assignment is not None:
                told = {
                    (name_of(self.world, each.topic_id), number)
                    for each in answer.assignment.topic_partitions
                    for number in each.partitions
                }
                self._told = told
                before, self.owned = self.owned, self.owned | told if self.clings else set(told)
                self.since = {each: self.since[each] if each in before else self.epoch for each in self.owned}
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
            self.owned.clear()
        return code


def world_of(**settings: Any) -> World:
    """With a topic t of six partitions and u of two."""
    return World(topics=MemoryTopics(t=6, u=2), **settings)


def group_of(world: World) -> ConsumerGroup:
    assert isinstance(world.group, ConsumerGroup)
    return world.group


def topic_id(world: World, name: str) -> bytes:
    topic = world.topics.by_name(name)
    assert topic is not None
    return topic.topic_id


def name_of(world: World, identity: bytes) -> str:
    topic = world.topics.by_id(identity)
    assert topic is not None
    return topic.name


def beat_all(*clients: Client, rounds: int = 4) -> None:
    for _ in range(rounds):
        for client in clients:
            assert client.beat() is ErrorCode.NONE


def numbers(client: Client) -> list[int]:
    return sorted(number for _, number in client.owned)
