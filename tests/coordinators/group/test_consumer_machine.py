"""Many lives of a consumer group: members that come, go, cling, fall silent, lose answers; topics that grow; restarts.

What must hold at every moment:
- no two members that are alive and unfenced read the same partition
- a member's epoch never goes back while it is a member, nor does the group's
- members that play on end with everything assigned, evenly, and a stable group
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from ixion.coordinators.group.consumer.group import ConsumerGroup
from ixion.model.errors import ErrorCode
from tests.coordinators.group.consumer_kit import Client
from tests.coordinators.group.kit import GROUP, MemoryTopics, World

LOST = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND)
SUBSCRIPTIONS = st.sampled_from([("t",), ("t", "u"), ("u",), None])  # None: by a pattern
ASSIGNORS = st.sampled_from([None, "range"])


class Groups(RuleBasedStateMachine):
    clients = Bundle("clients")

    def __init__(self) -> None:
        super().__init__()
        self.alive: list[Client] = []
        self.count = 0
        self.group_epoch = 0

    @initialize(partitions=st.integers(1, 7))
    def begin(self, partitions: int) -> None:
        self.world = World(topics=MemoryTopics(t=partitions, u=2))

    @rule(target=clients, subscriptions=st.lists(SUBSCRIPTIONS, min_size=1, max_size=3), assignor=ASSIGNORS)
    def come(self, subscriptions: list[tuple[str, ...] | None], assignor: str | None) -> Any:
        fields = {"server_assignor": assignor} if assignor else {}
        new = []
        for topics in subscriptions:
            self.count += 1
            if topics is None:
                new.append(Client(self.world, f"m{self.count}", subscribed_topic_regex="[tu]", **fields))
            else:
                new.append(Client(self.world, f"m{self.count}", *topics, **fields))
        self.alive += new
        return multiple(*new)

    @rule(client=clients)
    def beat(self, client: Client) -> None:
        if client.epoch == 0:
            assert client.join() is ErrorCode.NONE
            return
        before = client.epoch
        code = client.beat()
        if code in LOST:
            client.epoch = 0
        else:
            assert code is ErrorCode.NONE
            assert client.epoch >= before

    @rule(client=clients)
    def cling(self, client: Client) -> None:
        """It is slow to let go; until it does, nobody else may have what it has."""
        client.clings = not client.clings

    @rule(client=clients)
    def lose_an_answer(self, client: Client) -> None:
        """What the broker said does not arrive; the client says the same again later."""
        if client.epoch > 0:
            client.send(topic_partitions=client._owned())

    @rule(client=consumes(clients), dies=st.booleans())
    def go(self, client: Client, dies: bool) -> None:
        """Whoever is silent for a session timeout gives up by itself what it has, as clients do."""
        self.alive.remove(client)
        if client.epoch > 0 and not dies:
            client.leave()

    @rule(partitions=st.integers(1, 9))
    def grow(self, partitions: int) -> None:
        topic = self.world.topics.by_name("t")
        assert topic is not None
        self.world.topics.put("t", max(partitions, topic.partitions))

    @rule(ms=st.sampled_from([100, 20_000]))
    def wait(self, ms: int) -> None:
        """Those who are alive send heartbeats meanwhile."""
        self.world.advance(ms)
        for client in self.alive:
            self.beat(client)

    @rule()
    def restart(self) -> None:
        self.world = self.world.restart()
        for client in self.alive:
            client.world = self.world

    @rule()
    def all_settle(self) -> None:
        for client in self.alive:
            client.clings = False
        for _ in range(4):
            self.world.advance(20_000)
            for _ in range(4):
                for client in self.alive:
                    self.beat(client)
        group = self.group()
        if not self.alive or group is None:
            return
        assert set(group.members) == {client.member_id for client in self.alive}
        assert group.state.value == "Stable"
        wanted = {
            (name, number)
            for client in self.alive
            for name in (client.topics or ("t", "u"))
            if (topic := self.world.topics.by_name(name))
            for number in range(topic.partitions)
        }
        assert Counter(partition for client in self.alive for partition in client.owned) == Counter(wanted)

    @invariant()
    def nobody_shares_a_partition(self) -> None:
        owners = Counter(partition for client in self.alive for partition in client.owned)
        assert all(count == 1 for count in owners.values()), owners

    @invariant()
    def group_epochs_never_go_back(self) -> None:
        group = self.group()
        if group is not None:
            assert group.epoch >= self.group_epoch
            assert group.assignment_epoch <= group.epoch
            self.group_epoch = group.epoch

    def group(self) -> ConsumerGroup | None:
        found = next(iter(self.world.groups.shards)).groups.get(GROUP)
        assert found is None or isinstance(found, ConsumerGroup)
        return found


TestGroups = Groups.TestCase
TestGroups.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
