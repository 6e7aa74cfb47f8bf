"""Random histories of a consumer group: members that come, go, cling, fall silent, lose answers, read other topics or
return; members of the classic protocol among them, so that the group goes from one protocol to the other and back;
topics that grow; restarts.

What must hold at every moment:
- no two members that are alive and unfenced read the same partition
- a member's epoch never goes back while it is a member, nor does the group's
- a member commits at its epoch, or at an older one for what it has had since then, and not for anything else
- a member that does not revoke a partition in time is removed, and another reads it; no other member that sends
  heartbeats is removed
- a member that got its last answer has the partitions that the broker records for it
- members that play on end with everything assigned, evenly, and a stable group
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ixion.broker.coordinators.group.classic.group import ClassicGroup
from ixion.broker.coordinators.group.commits import Committer, Wanted
from ixion.broker.coordinators.group.consumer.assignment import Assignment
from ixion.broker.coordinators.group.consumer.demand import Demand
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.language.model.errors import ErrorCode
from tests.coordinators.group.consumer_kit import Client, Partition
from tests.coordinators.group.eager_kit import EagerClient
from tests.coordinators.group.kit import GROUP, MemoryTopics, World, whole
from tests.lives import lives

pytestmark = pytest.mark.timeout(600)  # a failure is made small for five minutes before it is shown
LOST = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND)
SUBSCRIPTIONS = st.sampled_from([("t",), ("t", "u"), ("u",), None])  # None: by a pattern
ASSIGNORS = st.sampled_from([None, "range"])
REBALANCE_MS = 60_000
SESSION_MS = 45_000


class Groups(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.alive: list[Client] = []
        self.eager: list[EagerClient] = []
        self.count = 0
        self.moment = 0
        self.last_at: dict[tuple[str, int], int] = {}  # member id, epoch -> when it was last there
        self.last_with: dict[Partition, dict[str, int]] = {}  # -> member id -> when it last had the partition
        self.asked: dict[str, tuple[Assignment, int]] = {}  # which member must revoke what, and since when
        self.last: ConsumerGroup | None = None
        self.group_epoch = 0
        self.had: dict[str, dict[int, set[Partition]]] = {}  # member id -> epoch -> what it had then
        self.heard_ms: dict[Client, int] = {}  # when it last sent a heartbeat
        self.clings_ms: dict[Client, int] = {}  # since when it clings to what it has
        self.missed: set[Client] = set()  # answers, since they joined

    @initialize(partitions=st.integers(1, 7), named=st.booleans(), interval_ms=st.sampled_from([0, 1_000]))
    def begin(self, partitions: int, named: bool, interval_ms: int) -> None:
        self.settings: dict[str, Any] = {"group_consumer_assignment_interval_ms": interval_ms}
        self.world = World(topics=MemoryTopics(t=partitions, u=2), **self.settings)
        self.come([("t",)], None, named)

    # What clients do.

    @rule(
        subscriptions=st.lists(SUBSCRIPTIONS, min_size=1, max_size=3),
        assignor=ASSIGNORS,
        named=st.booleans(),
        terse=st.booleans(),
    )
    def come(
        self, subscriptions: list[tuple[str, ...] | None], assignor: str | None, named: bool, terse: bool = False
    ) -> None:
        for topics in subscriptions:
            self.count += 1
            fields: dict[str, Any] = {"server_assignor": assignor} if assignor else {}
            if named:
                fields["instance_id"] = f"i{self.count}"
            if topics is None:
                self.alive.append(Client(self.world, f"m{self.count}", subscribed_topic_regex="[tu]", **fields))
            else:
                self.alive.append(Client(self.world, f"m{self.count}", *topics, **fields))
            self.alive[-1].terse = terse
            self.beat(self.alive[-1])

    @rule(topics=st.sampled_from([("t",), ("t", "u")]), rounds=st.integers(0, 4))
    def one_of_the_classic_protocol_comes(self, topics: tuple[str, ...], rounds: int) -> None:
        self.count += 1
        self.eager.append(EagerClient(self.world, f"e{self.count}", *topics))
        self.all_beat(rounds)

    @precondition(lambda self: self.alive)
    @rule(place=st.integers(0, 5))
    def one_beats(self, place: int) -> None:
        self.beat(self.pick(place))

    @rule(rounds=st.integers(1, 4))
    def all_beat(self, rounds: int) -> None:
        for _ in range(rounds):
            for client in self.alive:
                self.beat(client)
            for eager in self.eager:
                eager.beat()
                self.world.advance(5)

    @precondition(lambda self: self.alive)
    @rule(place=st.integers(0, 5))
    def cling(self, place: int) -> None:
        """It is slow to let go; until it does, nobody else may have what it has."""
        client = self.pick(place)
        if client.clings:
            client.let_go()
        else:
            self.begin_to_cling(client)

    def begin_to_cling(self, client: Client) -> None:
        if not client.clings:
            client.clings = True
            self.clings_ms[client] = self.world.clock.now_ms

    @precondition(lambda self: any(client.topics for client in self.alive))
    @rule(place=st.integers(0, 5), topics=st.sampled_from([("t",), ("t", "u"), ("u",), ("missing",)]))
    def one_reads_other_topics(self, place: int, topics: tuple[str, ...]) -> None:
        by_name = [client for client in self.alive if client.topics]
        client = by_name[place % len(by_name)]
        client.topics = topics
        self.beat(client, subscribed_topic_names=topics)

    @precondition(lambda self: self.alive)
    @rule(place=st.integers(0, 5), more=st.integers(0, 2))
    def lose_an_answer(self, place: int, more: int) -> None:
        """Perhaps the one that says that there are more partitions."""
        client = self.pick(place)
        topic = self.world.topics.by_name("t")
        assert topic is not None
        self.world.topics.put("t", topic.partitions + more)
        if client.epoch > 0:
            client.miss_an_answer()
            self.missed.add(client)

    @precondition(lambda self: self.alive)
    @rule(place=st.integers(0, 5), dies=st.booleans())
    def go(self, place: int, dies: bool) -> None:
        """A client that is silent for a session timeout gives up its partitions, as real ones do."""
        client = self.pick(place)
        self.alive.remove(client)
        if client.epoch > 0 and not dies and client.leave() is ErrorCode.NONE:
            group = self.group()
            assert group is None or client.member_id not in group.members

    @rule(rounds=st.integers(2, 4))
    def all_of_the_consumer_protocol_go(self, rounds: int) -> None:
        """Those of the classic one go on without them."""
        while self.alive:
            self.go(0, False)
        self.all_beat(rounds)

    @precondition(lambda self: self.eager)
    @rule(dies=st.booleans())
    def one_of_the_classic_protocol_goes(self, dies: bool) -> None:
        eager = self.eager.pop()
        if eager.member_id and not dies:
            eager.leave()

    @precondition(lambda self: any("instance_id" in client.fields and client.epoch > 0 for client in self.alive))
    @rule(beats=st.booleans())
    def one_returns_under_its_name(self, beats: bool) -> None:
        """It leaves for a while; its partitions are kept, nobody else gets them, and it has them again."""
        client = next(each for each in self.alive if "instance_id" in each.fields and each.epoch > 0)
        self.alive.remove(client)
        self.count += 1
        again = Client(self.world, f"m{self.count}", *client.topics, **client.fields)
        group = self.group()
        if group is not None and client.member_id in group.members:
            assert again.join() is ErrorCode.UNRELEASED_INSTANCE_ID, "it is there"
        is_settled = group is not None and group.state.value == "Stable"
        if client.leave(-2) is not ErrorCode.NONE:
            return
        assert group is not None
        kept, epoch = group.members[client.member_id].current.assigned, group.epoch
        self.all_beat(int(beats))
        self.alive.append(again)
        self.heard_ms[again] = self.world.clock.now_ms
        assert again.join() is ErrorCode.NONE
        assert group.static_members[client.fields["instance_id"]] == again.member_id
        if is_settled and group.epoch == epoch:
            assert again.owned == {(self.name(topic), each) for topic in kept for each in kept[topic]}

    @precondition(lambda self: self.alive)
    @rule(place=st.integers(0, 5), back=st.integers(0, 2), whole=st.booleans())
    def commit(self, place: int, back: int, whole: bool) -> None:
        """At its epoch it commits anything; at one of before only what it had then and still has."""
        client = self.pick(place)
        past = self.had.get(client.member_id, {})
        group = self.group()
        if group is None or client.member_id not in group.members or client.epoch <= 0 or not past:
            return
        epochs = sorted(past)
        epoch = epochs[-1 - min(back, len(epochs) - 1)]
        partitions = sorted(past[epoch])[: None if whole else 1]
        if not partitions:
            return
        told: list[list[ErrorCode]] = []
        wanted = [Wanted(each, 1, -1, None) for each in partitions]
        self.world.groups.commits.commit(Committer(GROUP, client.member_id, None, epoch), wanted, told.append)
        (codes,) = told
        member = group.members[client.member_id]
        if epoch == member.epoch:
            assert set(codes) == {ErrorCode.NONE}
        elif epoch > member.epoch or any(self.was_with_another(client, each, epoch) for each in partitions):
            assert set(codes) == {ErrorCode.STALE_MEMBER_EPOCH}
        elif all(each in client.owned and client.since[each] <= epoch for each in partitions):
            assert set(codes) == {ErrorCode.NONE}, "it has had them all the time"

    @precondition(lambda self: self.alive)
    @rule(place=st.integers(0, 5))
    def a_commit_is_overtaken(self, place: int) -> None:
        """By another member that comes and is given some of the partitions."""
        self.come([("t",), ("t",)], None, False)
        for _ in range(4):
            self.all_beat(1)
            self.all_is_well()
        self.commit(place, 1, True)
        self.commit(place, 2, True)

    @precondition(lambda self: self.alive)
    @rule(place=st.integers(0, 5), by=st.sampled_from([-2, 1, 2, 1000]))
    def one_names_an_epoch_that_is_not_its_own(self, place: int, by: int) -> None:
        client = self.pick(place)
        group = self.group()
        if group is not None and client.member_id in group.members and client.epoch > 2:
            before = known_of(group)
            member = group.members[client.member_id]
            epoch = member.epoch + by
            if epoch not in (member.epoch, member.current.previous_epoch) and epoch > 0:
                instance_id = client.fields.get("instance_id")
                answer = client.send(member_epoch=epoch, instance_id=instance_id, topic_partitions=())
                assert answer.error_code == ErrorCode.FENCED_MEMBER_EPOCH
                assert known_of(group) == before

    # What the world does.

    @rule(partitions=st.integers(1, 9))
    def grow(self, partitions: int) -> None:
        topic = self.world.topics.by_name("t")
        assert topic is not None
        self.world.topics.put("t", max(partitions, topic.partitions))
        group = self.group()
        if group is not None and self.alive and partitions > topic.partitions:
            epoch, is_read = group.epoch, group.reads("t")
            self.beat(self.alive[0])
            assert group.epoch > epoch or not is_read or self.alive[0].epoch == 0, "nobody has seen it grow"

    @rule(ms=st.sampled_from([100, 20_000, REBALANCE_MS + 20_000]))
    def wait(self, ms: int) -> None:
        """Live clients send heartbeats meanwhile."""
        for _ in range(max(ms // 20_000, 1)):
            self.world.advance(min(ms, 20_000))
            self.all_beat(1)
            self.all_is_well()

    @rule(one_dies=st.booleans())
    def restart(self, one_dies: bool) -> None:
        """The broker knows afterwards what it knew before."""
        if one_dies and self.alive:
            self.go(0, True)
        before = known_of(self.group())
        self.world = self.world.restart(**self.settings)
        assert known_of(self.group()) == before
        for client in self.alive:
            client.world = self.world
        for eager in self.eager:
            eager.world = self.world
        self.asked.clear()  # it has its time again
        group = self.group()
        assert (group is None) == (self.last is None)
        self.last = group

    @rule()
    def somebody_clings_for_too_long(self) -> None:
        """A member that waits for its partitions gets them when the time of the others is up."""
        self.come([("t",)], None, False)
        self.all_beat(3)
        group = self.group()
        clinging = [client for client in self.alive if client.owned]
        if group is None or not clinging:
            return
        client = clinging[0]
        self.begin_to_cling(client)
        self.come([("t",), ("t",)], None, False)
        self.wait(REBALANCE_MS + 20_000)

    @rule()
    def all_settle(self) -> None:
        for client in self.alive:
            client.let_go()
        for _ in range(6):
            self.world.advance(20_000)
            self.all_beat(5)
        group = next(iter(self.world.groups.shards)).groups.get(GROUP)
        everybody: list[Client | EagerClient] = [*self.alive, *self.eager]
        if not everybody or group is None:
            return
        assert set(group.members) == {client.member_id for client in everybody}
        assert group.state.value == "Stable"
        assert isinstance(group, ConsumerGroup if self.alive else ClassicGroup), "it goes with its members"
        wanted = {
            (name, number)
            for client in everybody
            for name in (client.topics or ("t", "u"))
            if (topic := self.world.topics.by_name(name))
            for number in range(topic.partitions if not isinstance(group, ClassicGroup) else 0)
        }
        owned = Counter(partition for client in everybody for partition in client.owned)
        if isinstance(group, ConsumerGroup):  # a classic one follows its topics when its leader looks
            assert owned == Counter(wanted)
            alike = len({client.topics or ("t", "u") for client in everybody}) == 1
            if alike and not any("server_assignor" in client.fields for client in self.alive):
                counts = [len(client.owned) for client in everybody]
                assert max(counts) - min(counts) <= 1, "not evenly"

    # What must hold.

    @invariant()
    def all_is_well(self) -> None:
        self.nobody_shares_a_partition()
        self.group_epochs_never_go_back()
        self.nobody_clings_for_ever()
        self.demand_is_what_members_want()
        self.moment += 1
        for client in self.alive:
            if client.epoch > 0:
                self.had.setdefault(client.member_id, {}).setdefault(client.epoch, set()).update(client.owned)
                self.last_at[client.member_id, client.epoch] = self.moment
                for partition in client.owned:
                    self.last_with.setdefault(partition, {})[client.member_id] = self.moment

    def demand_is_what_members_want(self) -> None:
        group = self.world.group if whole(self.world.groups.admin.list((), ()))[1] else None
        if isinstance(group, ConsumerGroup):
            fresh = Demand()
            for member in group.members.values():
                fresh.add(member.member_id, member.subscription)
            for name in set(Demand.__slots__) - {"changes"}:
                assert getattr(group.demand, name) == getattr(fresh, name), name

    def nobody_shares_a_partition(self) -> None:
        everybody: list[Client | EagerClient] = [*self.alive, *self.eager]
        owners = Counter(partition for client in everybody for partition in client.owned)
        assert all(count == 1 for count in owners.values()), owners

    def nobody_clings_for_ever(self) -> None:
        group = self.group()
        now_ms = self.world.clock.now_ms
        seen, self.asked = self.asked, {}
        for member in group.members.values() if group is not None else ():
            if member.current.revoking and not member.is_classic:
                what, since_ms = seen.get(member.member_id, ({}, now_ms))
                if what != member.current.revoking:
                    since_ms = now_ms
                self.asked[member.member_id] = member.current.revoking, since_ms
                assert now_ms - since_ms <= REBALANCE_MS, f"{member.member_id} clings on"

    def group_epochs_never_go_back(self) -> None:
        """As long as it is one: an empty one is replaced by a classic group, which counts from 0."""
        group = self.group()
        if group is not self.last:
            self.last, self.group_epoch = group, 0
        if group is not None:
            assert group.epoch >= self.group_epoch
            assert group.assignment_epoch <= group.epoch
            self.group_epoch = group.epoch

    def beat(self, client: Client, **fields: Any) -> None:
        if client.epoch == 0:
            code = client.join()
            assert code is ErrorCode.NONE or code is ErrorCode.UNRELEASED_INSTANCE_ID, code.name
            self.had.pop(client.member_id, None)
            self.heard_ms[client] = self.world.clock.now_ms
            self.missed.discard(client)
            return
        before = client.epoch
        code = client.beat(**{"instance_id": client.fields.get("instance_id"), **fields})
        if code in LOST:
            self.expect_reason(client)
            client.epoch = 0
            if fields:
                self.beat(client)  # what it wanted to say, it says when it joins
        else:
            assert code is ErrorCode.NONE
            assert client.epoch >= before
            self.heard_ms[client] = self.world.clock.now_ms
            group = self.group()
            assert group is not None
            assigned = group.members[client.member_id].current.assigned
            has = {(self.name(topic), number) for topic in assigned for number in assigned[topic]}
            assert has == client.owned or (client.clings and has <= client.owned)

    def expect_reason(self, client: Client) -> None:
        """It was silent for a session, or did not let go in time; or answers were lost, and its epoch is too old."""
        now_ms = self.world.clock.now_ms
        is_late = client.clings and now_ms - self.clings_ms[client] >= REBALANCE_MS
        is_silent = now_ms - self.heard_ms[client] >= SESSION_MS
        assert is_late or is_silent or client in self.missed, f"{client.member_id} is removed for nothing"

    def was_with_another(self, client: Client, partition: Partition, epoch: int) -> bool:
        left = self.last_at[client.member_id, epoch]
        return any(
            moment > left for member_id, moment in self.last_with[partition].items() if member_id != client.member_id
        )

    def name(self, topic_id: bytes) -> str:
        topic = self.world.topics.by_id(topic_id)
        assert topic is not None
        return topic.name

    def pick(self, place: int) -> Client:
        return self.alive[place % len(self.alive)]

    def group(self) -> ConsumerGroup | None:
        found = next(iter(self.world.groups.shards)).groups.get(GROUP)
        return found if isinstance(found, ConsumerGroup) else None


def known_of(group: ConsumerGroup | None) -> Any:
    """All that a broker knows of a group."""
    if group is None:
        return None
    members = {member.member_id: (member.subscription, member.current) for member in group.members.values()}
    targets = {member_id: dict(target) for member_id, target in group.targets.items()}
    return group.epoch, group.assignment_epoch, members, targets, group.static_members, group.regexes


TestGroups = Groups.TestCase
TestGroups.settings = settings(max_examples=lives(40), stateful_step_count=30, deadline=None)
