"""Many lives of a classic group: members that come, go, fall silent and return, with the broker restarting in between.

What must hold at every moment:
- a generation gives a partition to one member only (the assignment that members were told, by generation)
- generations never go back (but one that no member has synced to is forgotten when the broker restarts)
- offsets committed by members of the present generation, and only those, are there, also after a restart
- every request is answered when all members that are alive have done their part
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
)

from ixion.coordinators.group.classic.group import ClassicGroup
from ixion.coordinators.group.commits import Committer, Wanted
from ixion.coordinators.group.stored_offsets import Reader
from ixion.model.errors import ErrorCode
from tests.coordinators.group.kit import GROUP, Answer, World

SESSION_MS = 10_000
REBALANCE_MS = 30_000


class Consumer:
    """A client that does what clients do, one step at a time."""

    def __init__(self, name: str, instance: str | None) -> None:
        self.name = name
        self.instance = instance
        self.member_id = ""
        self.generation = -1
        self.joining: Answer | None = None
        self.syncing: Answer | None = None
        self.assignment: bytes | None = None


class Groups(RuleBasedStateMachine):
    consumers = Bundle("consumers")

    def __init__(self) -> None:
        super().__init__()
        self.alive: list[Consumer] = []
        self.hanging: list[Consumer] = []
        self.told: dict[int, dict[str, str]] = {}  # generation -> what is given away -> to whom
        self.highest = 0
        self.committed = -1
        self.offset = 0
        self.count = 0

    @initialize(version=st.sampled_from([3, 5, 9]))
    def begin(self, version: int) -> None:
        self.world = World(group_initial_rebalance_delay_ms=100)
        self.version = version

    @rule(target=consumers, static=st.booleans())
    def come(self, static: bool) -> Consumer:
        self.count += 1
        consumer = Consumer(f"c{self.count}", f"i{self.count % 3}" if static else None)
        self.alive.append(consumer)
        return consumer

    @rule(consumer=consumers)
    def step(self, consumer: Consumer) -> None:
        """The next thing that this client would do."""
        self.collect(consumer)
        if consumer.joining is None and consumer.syncing is None and consumer.assignment is None:
            self.join(consumer)
        elif consumer.assignment is not None:
            self.heartbeat(consumer)
        self.collect(consumer)

    @rule(consumer=consumers)
    def commit(self, consumer: Consumer) -> None:
        told: list[list[ErrorCode]] = []
        self.offset += 1
        self.world.groups.commits.commit(
            Committer(GROUP, consumer.member_id or "nobody", consumer.instance, max(consumer.generation, 0)),
            [Wanted(("t", 0), self.offset, -1, None)],
            told.append,
        )
        if told == [[ErrorCode.NONE]]:
            group = self.world.group
            assert consumer.generation == group.generation
            assert consumer.member_id in group.members
            self.committed = self.offset

    @rule(consumer=consumes(consumers))
    def leave(self, consumer: Consumer) -> None:
        if consumer.member_id:
            code = self.world.leave(consumer.member_id, consumer.instance)
            for request in (consumer.joining, consumer.syncing):
                assert request is None or not request.waits or code is not ErrorCode.NONE, "left without an answer"
        self.alive.remove(consumer)

    @rule(consumer=consumes(consumers))
    def die(self, consumer: Consumer) -> None:
        self.alive.remove(consumer)

    @rule(consumer=consumes(consumers))
    def hang(self, consumer: Consumer) -> None:
        """Its heart goes on beating, but it does nothing else any more."""
        self.alive.remove(consumer)
        if consumer.instance is None:
            self.hanging.append(consumer)

    @rule(consumer=consumers)
    def lose_the_answer(self, consumer: Consumer) -> None:
        """The connection breaks; the client asks again."""
        consumer.joining = consumer.syncing = None

    @rule(consumer=consumers)
    def sleep_through(self, consumer: Consumer) -> None:
        """A sign of life whose answer is not looked at."""
        if consumer.member_id:
            self.world.heartbeat(consumer.member_id, consumer.generation, consumer.instance)

    @rule(ms=st.sampled_from([10, 150, 3_000, SESSION_MS + 100]))
    def wait(self, ms: int) -> None:
        self.world.advance(ms)

    @rule()
    def restart(self) -> None:
        self.world = self.world.restart(group_initial_rebalance_delay_ms=100)
        for consumer in self.alive:
            self.collect(consumer)
        # A generation that nobody had synced to yet is forgotten, and its number is used again.
        self.highest = max(self.told, default=0)

    @rule()
    def all_settle(self) -> None:
        """When everybody who is alive plays on, everybody ends up in one generation."""
        instances = [consumer.instance for consumer in self.alive if consumer.instance]
        if len(set(instances)) < len(instances):
            return  # two that fight for one instance never settle
        for _ in range(60):
            for consumer in self.alive:
                self.step(consumer)
            for consumer in self.hanging:
                self.world.heartbeat(consumer.member_id, consumer.generation)
            self.world.advance(2_000)
        for consumer in self.alive:
            self.step(consumer)
            assert consumer.assignment is not None, f"{consumer.name} waits for ever"
        assert len({consumer.generation for consumer in self.alive}) <= 1
        if self.alive:
            stable = {consumer.member_id for consumer in self.hanging}
            assert set(self.world.group.members) - stable == {consumer.member_id for consumer in self.alive}

    @invariant()
    def generations_never_go_back(self) -> None:
        group = next(iter(self.world.groups.shards)).groups.get(GROUP)
        if isinstance(group, ClassicGroup):
            assert group.generation >= self.highest
            self.highest = group.generation

    @invariant()
    def offsets_are_kept(self) -> None:
        if self.committed >= 0:
            found = self.world.groups.offsets.fetch(Reader(GROUP), [("t", 0)], require_stable=False)
            assert isinstance(found, list)
            assert found[0][1] is not None
            assert found[0][1].offset == self.committed

    def join(self, consumer: Consumer) -> None:
        consumer.joining = self.world.join(
            consumer.member_id,
            client=consumer.name,
            instance=consumer.instance,
            version=self.version,
            session_ms=SESSION_MS,
            rebalance_ms=REBALANCE_MS,
        )

    def heartbeat(self, consumer: Consumer) -> None:
        code = self.world.heartbeat(consumer.member_id, consumer.generation, consumer.instance)
        if code is ErrorCode.NONE:
            return
        consumer.assignment = None
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            consumer.member_id, consumer.generation = "", -1
        else:
            assert code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION)

    def collect(self, consumer: Consumer) -> None:
        """Take the answers that have come, and go on from them."""
        if consumer.joining is not None and not consumer.joining.waits:
            answer = consumer.joining.join
            consumer.joining = None
            code = ErrorCode(answer.error_code)
            if code is ErrorCode.MEMBER_ID_REQUIRED:
                consumer.member_id = answer.member_id
            elif code is not ErrorCode.NONE:
                if code is not ErrorCode.NOT_COORDINATOR:
                    consumer.member_id, consumer.generation = "", -1
            else:
                consumer.member_id, consumer.generation = answer.member_id, answer.generation_id
                assert answer.generation_id > 0
                given = {}
                if answer.leader == answer.member_id and not answer.skip_assignment:
                    names = [member.member_id for member in answer.members]
                    assert answer.member_id in names
                    given = {name: f"{answer.generation_id}:{place}".encode() for place, name in enumerate(names)}
                consumer.syncing = self.world.sync(consumer.member_id, consumer.generation, given)
        if consumer.syncing is not None and not consumer.syncing.waits:
            synced = consumer.syncing.sync
            consumer.syncing = None
            if synced.error_code == ErrorCode.NONE:
                consumer.assignment = synced.assignment
                self.note(consumer, synced.assignment.decode())
            elif synced.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
                consumer.member_id, consumer.generation = "", -1

    def note(self, consumer: Consumer, assignment: str) -> None:
        if assignment:
            who = consumer.instance or consumer.member_id
            assert assignment.startswith(f"{consumer.generation}:"), "an assignment of another generation"
            owner = self.told.setdefault(consumer.generation, {}).setdefault(assignment, who)
            assert owner == who, f"{assignment} was given to {owner} and {who}"


TestGroups = Groups.TestCase
TestGroups.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
