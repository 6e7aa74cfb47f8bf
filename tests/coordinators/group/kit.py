"""A group coordinator without a broker: a log in memory, and a loop and a clock that the test moves.

Use it for rules, timeouts, crashes and faults of the log: every request is a call, and no time passes by itself. Four
kits stand beside it:
  `consumer_kit`  members of the consumer protocol (KIP-848) that behave as clients do
  `eager_kit`     members of the classic protocol that do, to mix both protocols in one group
  `members`       the real clients (librdkafka, kafka-python, aiokafka) against a running broker
  `tests/apis/group_kit.py`  single requests over a connection, to test an API key
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any, TypeVar, cast

from ixion.broker.coordinators.group.caller import Caller
from ixion.broker.coordinators.group.coordinator import GroupCoordinator
from ixion.broker.coordinators.group.topics import Topic
from ixion.config.dynamic import DynamicConfig
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k11_join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from ixion.language.protocol.messages.k12_heartbeat import HeartbeatRequest
from ixion.language.protocol.messages.k13_leave_group import MemberIdentity
from ixion.language.protocol.messages.k14_sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from ixion.language.protocol.storage import encode
from ixion.language.protocol.stored.consumer_protocol import ConsumerProtocolSubscription
from ixion.language.records.batch import BatchView
from ixion.timer.clock import ManualClock
from ixion.timer.loop_timer import LoopTimer
from ixion.timer.turns import Steps, run_turn

GROUP = "g"
START_MS = 1_000_000


T = TypeVar("T")


def whole(steps: Steps[T]) -> T:
    """All steps at once."""
    while (result := run_turn(steps)) is None:
        pass
    return result[0]


class ManualLoop:
    """Runs what is due when told to."""

    def __init__(self) -> None:
        self._ready: deque[tuple[Callable[..., Any], tuple[Any, ...]]] = deque()
        self.turns = 0

    def call_soon(self, fn: Callable[..., Any], *args: Any) -> None:
        self._ready.append((fn, args))

    call_soon_threadsafe = call_soon

    @property
    def is_busy(self) -> bool:
        return bool(self._ready)

    def run(self) -> None:
        while self._ready:
            self.step()

    def step(self) -> None:
        """One thing that is due."""
        self.turns += 1
        fn, args = self._ready.popleft()
        fn(*args)


class MemoryLog:
    """A CoordinatorLog of one partition. `hold` keeps appends from being acknowledged, `fail` refuses the next one."""

    name = "__consumer_offsets"
    partition_count = 1

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.next_offset = 0
        self.hold = False
        self.fail: ErrorCode = ErrorCode.NONE
        self.held: list[Callable[[], None]] = []
        self.unreadable: Exception | None = None  # what reading it raises
        self.reads = 0
        self.fetches: dict[int, int] | None = {}  # of the in-sync followers
        self.replicated: int | None = None  # the high watermark; None: all of it is replicated

    def partition_for(self, key: str) -> int:
        return 0

    def largest_batch(self, partition: int) -> int:
        return 1_048_588

    def leader_epoch(self, partition: int) -> int:
        return 0

    def append(
        self, partition: int, batch: bytes, done: Callable[[ErrorCode, int], None], *, whole: bool = False
    ) -> None:
        if self.fail is not ErrorCode.NONE:
            code, self.fail = self.fail, ErrorCode.NONE
            self._tell(lambda: done(code, -1))
            return
        self.write(batch)
        end = self.next_offset
        self._tell(lambda: done(ErrorCode.NONE, end))

    def write(self, batch: bytes) -> None:
        placed = bytearray(batch)
        placed[0:8] = self.next_offset.to_bytes(8)
        self.batches.append(bytes(placed))
        self.next_offset = int(BatchView(bytes(placed)).next_offset)

    def release(self) -> None:
        self.hold = False
        held, self.held = self.held, []
        for tell in held:
            tell()

    def forget_held(self) -> None:
        self.hold = False
        self.held.clear()

    def read(self, partition: int) -> Iterator[BatchView]:
        self.reads += 1
        for batch in list(self.batches):
            if self.unreadable is not None:
                raise self.unreadable
            yield BatchView(batch)
        if self.unreadable is not None:
            raise self.unreadable

    def end(self, partition: int) -> int:
        return self.next_offset

    def is_replicated(self, partition: int, end: int) -> bool:
        return self.replicated is None or self.replicated >= end

    def follower_fetches(self, partition: int) -> dict[int, int] | None:
        return self.fetches

    async def ensure(self) -> None:
        """It is there."""

    def _tell(self, tell: Callable[[], None]) -> None:
        if self.hold:
            self.held.append(tell)
        else:
            tell()


class MemoryTopics:
    """A TopicLookup. The id of a topic is its name, padded."""

    def __init__(self, **partitions: int) -> None:
        self.version = 0
        self._topics = {name: Topic(name, topic_id(name), count) for name, count in partitions.items()}

    def put(self, name: str, partitions: int) -> None:
        self._topics[name] = Topic(name, topic_id(name), partitions)
        self.version += 1

    def remove(self, name: str) -> None:
        del self._topics[name]
        self.version += 1

    def by_name(self, name: str) -> Topic | None:
        return self._topics.get(name)

    def by_id(self, topic_id: bytes) -> Topic | None:
        return next((each for each in self._topics.values() if each.topic_id == topic_id), None)

    def names(self) -> list[str]:
        return list(self._topics)


def topic_id(name: str) -> bytes:
    """Of a long name, its hash."""
    return name.encode().ljust(16) if len(name) <= 16 else blake2b(name.encode(), digest_size=16).digest()


class World:
    """A coordinator and its surroundings. Member ids are drawn as <client>-1, <client>-2 ..."""

    def __init__(
        self,
        log: MemoryLog | None = None,
        topics: MemoryTopics | None = None,
        *,
        start_ms: int = START_MS,
        ids: Iterator[int] | None = None,
        **settings: object,
    ) -> None:
        self.loop = ManualLoop()
        self.clock = ManualClock(start_ms)
        self.timer = LoopTimer(loop=cast(Any, self.loop), clock=self.clock)
        self.log = log or MemoryLog()
        given = {"group.initial.rebalance.delay.ms": "1", "group.consumer.assignment.interval.ms": "0"} | {
            name.replace("_", "."): str(value) for name, value in settings.items()
        }
        self.config = DynamicConfig(given)
        self.topics = topics or MemoryTopics()
        self._ids = ids = ids or itertools.count(1)
        self.lease: int | None = 1  # the session of the broker
        self.groups = GroupCoordinator(
            self.log,
            timer=self.timer,
            clock_ms=lambda: self.clock.now_ms,
            config=self.config,
            topics=self.topics,
            new_id=lambda prefix: f"{prefix}-{next(ids)}",
            lease=lambda: self.lease,
            streams_version=lambda: 1,
        )
        self.groups.on_elected(0, 0)
        self.run()

    def run(self) -> None:
        self.loop.run()

    def advance(self, ms: int) -> None:
        """From one thing that is due to the next, as a real clock moves."""
        end_ms = self.clock.now_ms + ms
        while (due_ms := self.timer.snapshot().next_due_ms) is not None and due_ms <= end_ms:
            self.clock.advance(max(due_ms - self.clock.now_ms, 0))
            self.run()
        self.clock.advance(end_ms - self.clock.now_ms)
        self.run()

    def restart(self, **settings: object) -> World:
        """The broker stops and starts again, on what is in the log. What was not acknowledged yet never is."""
        self.groups.stop()
        self.log.forget_held()
        self.run()
        return World(self.log, self.topics, start_ms=self.clock.now_ms, ids=self._ids, **settings)

    @property
    def group(self) -> Any:
        return next(iter(self.groups.shards)).groups[GROUP]

    @property
    def state(self) -> str:
        return cast(str, self.group.state.value)

    def join(self, member_id: str = "", **fields: Any) -> Answer:
        return join(self, member_id=member_id, **fields)

    def sync(
        self, member_id: str, generation: int, assignments: dict[str, bytes] | None = None, **fields: Any
    ) -> Answer:
        answer = Answer(self.clock)
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=generation,
            member_id=member_id,
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=name, assignment=given)
                for name, given in (assignments or {}).items()
            ),
            **fields,
        )
        self.groups.classic.sync(request, answer)
        self.run()
        return answer

    def heartbeat(self, member_id: str, generation: int, instance: str | None = None) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=GROUP, generation_id=generation, member_id=member_id, group_instance_id=instance
        )
        code = self.groups.classic.heartbeat(request)
        self.run()
        return code

    def leave(self, member_id: str = "", instance: str | None = None) -> object:
        codes = self.groups.classic.leave(GROUP, [MemberIdentity(member_id=member_id, group_instance_id=instance)])
        self.run()
        return codes[0] if isinstance(codes, list) else codes


class Answer:
    """Where an answer arrives, and when; more than one is an error."""

    def __init__(self, clock: ManualClock | None = None) -> None:
        self._clock = clock
        self.given: Any = None
        self.at_ms = -1

    def __call__(self, answer: Any) -> None:
        assert self.given is None, f"answered twice: {self.given} and {answer}"
        self.given = answer
        if self._clock is not None:
            self.at_ms = self._clock.now_ms

    @property
    def waits(self) -> bool:
        return self.given is None

    @property
    def join(self) -> JoinGroupResponse:
        assert isinstance(self.given, JoinGroupResponse)
        return self.given

    @property
    def sync(self) -> SyncGroupResponse:
        assert isinstance(self.given, SyncGroupResponse)
        return self.given

    @property
    def code(self) -> ErrorCode:
        assert self.given is not None, "no answer yet"
        return ErrorCode(self.given.error_code)


def subscription(*topics: str) -> bytes:
    return encode(ConsumerProtocolSubscription(topics=topics), 0)


def join(
    world: World,
    *,
    member_id: str = "",
    instance: str | None = None,
    client: str = "c",
    version: int = 3,
    protocols: dict[str, bytes] | list[tuple[str, bytes]] | None = None,
    protocol_type: str = "consumer",
    session_ms: int = 10_000,
    rebalance_ms: int = 60_000,
    group: str = GROUP,
    reason: str | None = None,
) -> Answer:
    answer = Answer(world.clock)
    offered = {"range": subscription("t")} if protocols is None else protocols
    pairs = offered.items() if isinstance(offered, dict) else offered
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=protocol_type,
        protocols=tuple(JoinGroupRequestProtocol(name=name, metadata=data) for name, data in pairs),
        reason=reason,
    )
    world.groups.classic.join(request, Caller(version=version, client_id=client, host="/127.0.0.1"), answer)
    world.run()
    return answer


def settle(world: World, *clients: str, **fields: Any) -> list[str]:
    """A stable group of new members by these client ids; returns their member ids."""
    answers = [world.join(client=client, **fields) for client in clients]
    world.advance(5)
    ids = [answer.join.member_id for answer in answers]
    generation = answers[0].join.generation_id
    leader = answers[0].join.leader
    assignments = {member: f"of {member}".encode() for member in ids}
    for member in ids:
        if member != leader:
            world.sync(member, generation)
    world.sync(leader, generation, assignments)
    assert world.state == "Stable"
    return ids
