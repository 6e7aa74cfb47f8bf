"""Random histories of a streams group: members of some processes that come, go, cling, fall silent, lose answers or
return under their names; topics that grow; another number of standby tasks; restarts.

What must hold at every moment:
- no two members that are alive and unfenced run the same active task, and a process runs a task once
- a member's epoch never goes back while it is a member, nor does the group's
- a member commits at its epoch, or at an older one for what it has had since then
- a member that does not revoke in time is removed; no other member that sends heartbeats is
- members that play on end with every task active once, evenly, with standby tasks, and a stable group
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ixion.broker.coordinators.group.commits import Committer, Wanted
from ixion.broker.coordinators.group.streams.group import StreamsGroup
from ixion.broker.coordinators.group.streams.tasks import Task
from ixion.language.model.errors import ErrorCode
from tests.coordinators.group.kit import GROUP
from tests.coordinators.group.streams_kit import Client, world_of
from tests.lives import lives

pytestmark = pytest.mark.timeout(600)  # a failure is made small for five minutes before it is shown
LOST = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND)
REBALANCE_MS = 10_000
SESSION_MS = 45_000


class StreamsGroups(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.alive: list[Client] = []
        self.count = 0
        self.last: StreamsGroup | None = None
        self.group_epoch = 0
        self.epochs: dict[str, int] = {}
        self.heard_ms: dict[Client, int] = {}
        self.clings_ms: dict[Client, int] = {}
        self.missed: set[Client] = set()  # answers; who misses two in a row may be two epochs behind
        self.had: dict[str, dict[int, set[Task]]] = {}  # member id -> epoch -> what was active then

    @initialize(
        partitions=st.integers(1, 5),
        standbys=st.integers(0, 2),
        interval_ms=st.sampled_from([0, 1_000]),
        delay_ms=st.sampled_from([0, 500]),
    )
    def begin(self, partitions: int, standbys: int, interval_ms: int, delay_ms: int) -> None:
        self.standbys = standbys
        self.settings: dict[str, Any] = {
            "group_streams_assignment_interval_ms": interval_ms,
            "group_streams_initial_rebalance_delay_ms": delay_ms,
        }
        self.world = world_of(partitions, group_streams_num_standby_replicas=standbys, **self.settings)
        self.come("p", False)

    @rule(process=st.sampled_from("pqr"), named=st.booleans())
    def come(self, process: str, named: bool) -> None:
        self.count += 1
        fields: dict[str, Any] = {"instance_id": f"i{self.count}"} if named else {}
        self.alive.append(Client(self.world, f"m{self.count}", process, **fields))
        self.beat(self.alive[-1])

    @precondition(lambda self: self.alive)
    @rule(place=st.integers(0, 5))
    def one_beats(self, place: int) -> None:
        self.beat(self.pick(place))

    @rule(rounds=st.integers(1, 4))
    def all_beat(self, rounds: int) -> None:
        for _ in range(rounds):
            for client in self.alive:
                self.beat(client)

    @precondition(lambda self: self.alive)
    @rule(place=st.integers(0, 5))
    def cling(self, place: int) -> None:
        client = self.pick(place)
        if client.clings:
            client.let_go()
        else:
            client.clings = True
            self.clings_ms[client] = self.world.clock.now_ms

    @precondition(lambda self: any(client.epoch > 0 and not client.clings for client in self.alive))
    @rule(place=st.integers(0, 5))
    def lose_an_answer(self, place: int) -> None:
        able = [client for client in self.alive if client.epoch > 0 and not client.clings]
        client = able[place % len(able)]
        client.miss_an_answer()
        self.missed.add(client)

    @precondition(lambda self: self.alive)
    @rule(place=st.integers(0, 5), dies=st.booleans())
    def go(self, place: int, dies: bool) -> None:
        client = self.pick(place)
        self.alive.remove(client)
        if client.epoch > 0 and not dies and client.leave() is ErrorCode.NONE:
            group = self.group()
            assert group is None or client.member_id not in group.members

    @precondition(lambda self: any(client.fields.get("instance_id") and client.epoch > 0 for client in self.alive))
    @rule()
    def one_returns_under_its_name(self) -> None:
        client = next(each for each in self.alive if each.fields.get("instance_id") and each.epoch > 0)
        if client.leave(-2) is not ErrorCode.NONE:
            client.epoch = 0
            return
        self.alive.remove(client)
        self.count += 1
        again = Client(self.world, f"m{self.count}", **client.fields)
        self.alive.append(again)
        self.beat(again)
        group = self.group()
        assert group is not None
        assert group.static_members[client.fields["instance_id"]] == again.member_id

    @precondition(lambda self: self.alive)
    @rule(place=st.integers(0, 5), back=st.integers(0, 2))
    def commit(self, place: int, back: int) -> None:
        client = self.pick(place)
        past = self.had.get(client.member_id, {})
        group = self.group()
        if group is None or client.member_id not in group.members or client.epoch <= 0 or not past:
            return
        epochs = sorted(past)
        epoch = epochs[-1 - min(back, len(epochs) - 1)]
        tasks = [task for task in past[epoch] if task[0] == "0"]
        if not tasks:
            return
        told: list[list[ErrorCode]] = []
        wanted = [Wanted(("t", number), 1, -1, None) for _, number in tasks]
        self.world.groups.commits.commit(Committer(GROUP, client.member_id, None, epoch), wanted, told.append)
        member = group.members[client.member_id]
        if epoch == member.epoch:
            assert set(told[0]) == {ErrorCode.NONE}
        elif any(member.current.held_since(task) is None for task in tasks):
            assert set(told[0]) == {ErrorCode.STALE_MEMBER_EPOCH}

    @rule(partitions=st.integers(1, 3))
    def grow(self, partitions: int) -> None:
        """Its internal topics grow with it, as an administrator has to make them."""
        topic = self.world.topics.by_name("t")
        assert topic is not None
        for name in ("t", "again", "store"):
            if self.world.topics.by_name(name) is not None:
                self.world.topics.put(name, topic.partitions + partitions)

    @rule(ms=st.sampled_from([100, 1_000, 11_000, 46_000]))
    def wait(self, ms: int) -> None:
        for _ in range(0, ms, 4_000):
            self.world.advance(min(ms, 4_000))
            if ms < SESSION_MS:
                self.all_beat(1)

    @rule(standbys=st.integers(0, 2))
    def restart(self, standbys: int) -> None:
        self.standbys = standbys
        self.world = self.world.restart(group_streams_num_standby_replicas=standbys, **self.settings)
        for client in self.alive:
            client.world = self.world
        self.last = None

    @invariant()
    def all_is_well(self) -> None:
        group = self.group()
        if group is None:
            return
        if self.last is group:
            assert group.epoch >= self.group_epoch
        self.last, self.group_epoch = group, group.epoch
        active: Counter[Task] = Counter()
        places: Counter[tuple[str, Task]] = Counter()
        for member in group.members.values():
            for part in (member.current.assigned, member.current.revoking):
                for task in part.each():
                    places[member.profile.process_id, task] += 1
                    active[task] += member.current.has_active(task)
            before = self.epochs.get(member.member_id, 0)
            assert member.epoch >= before or member.epoch in (-2, 0)
            self.epochs[member.member_id] = member.epoch
        assert not [task for task, count in active.items() if count > 1], "two members have an active task"
        assert not [place for place, count in places.items() if count > 1], "a process has a task twice"
        ran: Counter[Task] = Counter()
        for client in self.alive:
            if client.member_id in group.members and client.epoch > 0:
                ran.update(client.active)
        assert not [task for task, count in ran.items() if count > 1], "two clients run an active task"

    def teardown(self) -> None:
        """Those that are alive play on."""
        if not self.alive:
            return
        for client in self.alive:
            client.let_go()
        for _ in range(12):
            self.world.advance(4_000)
            for client in self.alive:
                self.beat(client)
        for _ in range(8):
            self.world.advance(4_000)
            for client in self.alive:
                self.beat(client)
        group = self.group()
        assert group is not None
        assert group.state.value == "Stable"
        topic = self.world.topics.by_name("t")
        assert topic is not None
        tasks = {(name, number) for name in ("0", "1") for number in range(topic.partitions)}
        assert Counter(task for client in self.alive for task in client.active) == Counter(tasks)
        sizes = [len(client.active) for client in self.alive]
        assert max(sizes) - min(sizes) <= 1
        processes = {client.fields["process_id"] for client in self.alive}
        copies = Counter(task for client in self.alive for task in client.standby)
        wanted = min(self.standbys, len(processes) - 1)
        assert copies == Counter({task: wanted for task in tasks if task[0] == "1" and wanted})

    def group(self) -> StreamsGroup | None:
        found = next(iter(self.world.groups.shards)).groups.get(GROUP)
        assert found is None or isinstance(found, StreamsGroup)
        return found

    def pick(self, place: int) -> Client:
        return self.alive[place % len(self.alive)]

    def beat(self, client: Client) -> None:
        was_member = client.epoch > 0
        now_ms = self.world.clock.now_ms
        code = client.beat()
        if code in LOST:
            late = now_ms - self.heard_ms.get(client, now_ms) >= SESSION_MS
            clung = client in self.clings_ms and now_ms - self.clings_ms[client] >= REBALANCE_MS
            assert was_member
            behind = code is ErrorCode.FENCED_MEMBER_EPOCH and client in self.missed
            assert late or clung or behind, f"{client.member_id} was removed: {code.name}"
            assert client.beat() is ErrorCode.NONE
        else:
            assert code is ErrorCode.NONE
        if not client.clings:
            self.clings_ms.pop(client, None)
        self.heard_ms[client] = now_ms
        self.had.setdefault(client.member_id, {})[client.epoch] = set(client.active)


TestStreamsGroups = StreamsGroups.TestCase
TestStreamsGroups.settings = settings(max_examples=lives(30), stateful_step_count=30, deadline=None)
