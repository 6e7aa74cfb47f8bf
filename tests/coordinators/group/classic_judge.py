"""Decides what a client of a classic group does next, and judges the answers it gets.

The judge knows what each client has sent and received, and when; the state machine lists its rules.
"""

from __future__ import annotations

from collections import Counter

from ixion.broker.coordinators.group.classic.group import ClassicGroup
from ixion.broker.coordinators.group.classic.member import ClassicMember
from ixion.broker.coordinators.group.commits import Committer
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.messages.k11_join_group import JoinGroupResponse
from tests.coordinators.group.kit import GROUP, Answer, World
from tests.coordinators.group.offsets_model import OffsetsModel

SESSION_MS = 10_000
REBALANCE_MS = [10_000, 30_000]
SLACK_MS = 200  # the initial delay, and a tick
GONE = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)
REJOIN = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION)
LISTS = [("range",), ("sticky", "range"), ("range", "sticky"), ("cooperative", "sticky", "range")]


class Consumer:
    """A client that does what clients do, one step at a time."""

    def __init__(self, name: str, instance: str | None, protocols: tuple[str, ...], rebalance_ms: int) -> None:
        self.name = name
        self.instance = instance
        self.protocols = protocols
        self.rebalance_ms = rebalance_ms
        self.edition = 0  # of what it offers
        self.member_id = ""
        self.generation = -1
        self.joining: Answer | None = None
        self.joined: JoinGroupResponse | None = None  # and not synced yet
        self.syncing: Answer | None = None
        self.assignment: bytes | None = None
        self.sign_ms = 0  # when the broker last took a sign of life
        self.heard_ms = 0  # when it last sent or received anything
        self.calm_ms = 0  # when it got the generation, or last an answer that no other is on its way
        self.left = False
        self.is_forgotten = False  # the broker has lost its generation

    @property
    def key(self) -> str:
        return self.instance or self.member_id

    def offers(self) -> dict[str, bytes]:
        return {each: f"{self.name} {self.edition} {each}".encode() for each in self.protocols}

    def forget(self) -> None:
        self.member_id, self.generation, self.assignment, self.joined = "", -1, None, None


class Judge:
    world: World
    version: int  # of JoinGroup
    most: int  # members

    def __init__(self) -> None:
        self.alive: list[Consumer] = []
        self.hanging: list[Consumer] = []
        self.waiting: list[tuple[Consumer, Answer, int, bool]] = []  # requests, since when, whether they had to wait
        self.owners: dict[str, Consumer] = {}  # member id -> its client
        self.unheard: set[str] = set()  # member ids that were stored, and the broker stopped before it could say so
        self.lists: dict[tuple[str, int], tuple[str, ...]] = {}  # name, edition -> what it offers
        self.leaders: dict[int, str] = {}  # generation -> member id
        self.given: dict[int, dict[str, bytes]] = {}  # generation -> who -> what the leader gave it
        self.told: dict[int, dict[bytes, str]] = {}  # generation -> assignment -> the member that got it
        self.asked: dict[int, set[str]] = {}  # generation -> the members that asked for their assignment
        self.past: list[tuple[str, str | None, int]] = []  # member id, instance, generation
        self.complete: tuple[frozenset[str], int] = (frozenset(), 0)  # all members, if all have joined; since when
        self.loaded = 0  # the generation that the broker began with
        self.highest = 0
        self.count = 0
        self.released_ms = 0
        self.offsets = OffsetsModel()

    @property
    def now(self) -> int:
        return self.world.clock.now_ms

    def group(self) -> ClassicGroup | None:
        group = next(iter(self.world.groups.shards)).groups.get(GROUP)
        assert group is None or isinstance(group, ClassicGroup)
        return group

    def is_settled(self) -> bool:
        """All live members are in the current generation, and none is about to be removed from it."""
        group = self.group()
        there = [consumer.generation for consumer in self.alive if consumer.assignment is not None]
        return (
            group is not None
            and group.state.value == "Stable"
            and not self.waiting
            and not group.pending_sync
            and there == [group.generation] * len(self.alive)
        )

    def pick(self, place: int) -> Consumer:
        return self.alive[place % len(self.alive)]

    def pass_time(self, ms: int) -> None:
        while ms > 0:
            self.world.advance(min(ms, 3_000))
            ms -= 3_000
            self.sweep()
            for consumer in self.hanging:
                self.heartbeat(consumer)

    def begin_anew(self, generation: int) -> None:
        """What came after this generation is forgotten, and its number is used again."""
        self.loaded = self.highest = generation
        for consumer in self.owners.values():
            consumer.is_forgotten |= consumer.generation > generation
        for by_generation in (self.leaders, self.given, self.told, self.asked):
            for number in [each for each in by_generation if each > generation]:
                del by_generation[number]

    def step(self, consumer: Consumer) -> None:
        """The next thing that this client would do."""
        self.sweep()
        if consumer.joining is not None or consumer.syncing is not None:
            return
        if consumer.joined is not None:
            self.sync(consumer, consumer.joined)
        elif consumer.assignment is None:
            self.join(consumer)
        else:
            self.heartbeat(consumer)

    def join(self, consumer: Consumer) -> None:
        offers = consumer.offers()
        self.lists[consumer.name, consumer.edition] = consumer.protocols
        consumer.assignment = consumer.joined = None
        group, member_id = self.group(), consumer.member_id
        before = None if group is None else (group.state.value, group.generation, group.leader_id == member_id)
        member = None if group is None else group.members.get(member_id)
        size = 0 if group is None else len(group.members)
        is_known = member is not None or (group is not None and member_id in group.pending_members)
        is_news = member is None or dict(member.protocols) != offers
        answer = consumer.joining = self.world.join(
            consumer.member_id,
            client=consumer.name,
            instance=consumer.instance,
            version=self.version,
            protocols=offers,
            session_ms=SESSION_MS,
            rebalance_ms=consumer.rebalance_ms,
        )
        consumer.heard_ms = self.now
        self.waiting.append((consumer, answer, self.now, answer.waits))
        code = None if answer.waits else answer.code
        if member_id and not is_known:
            assert code not in (None, ErrorCode.NONE), "the group does not know it"
        if (
            member is None
            and size >= self.most
            and before is not None
            and before[0] in ("CompletingRebalance", "Stable")
        ):
            assert code not in (None, ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED), "there is no room for it"
        if code is ErrorCode.GROUP_MAX_SIZE_REACHED and group is not None:
            assert member_id not in [*group.members, *group.pending_members], "a refused member does not stay"
            assert member is None or size > self.most, "there is room for it"
        elif member is not None and member.member_id == member_id and before is not None and group is not None:
            state, generation, leads = before
            if state == "Stable" and (is_news or leads):
                is_refused = code not in (None, ErrorCode.NONE)  # it offers what the others do not
                assert is_refused or (group.state.value, group.generation) != (state, generation), (
                    "that asks for a rebalance"
                )
            elif state == "Stable" or (state == "CompletingRebalance" and not is_news):
                assert code is ErrorCode.NONE, "it asks for nothing new"
                assert answer.join.generation_id == group.generation == generation
        self.sweep()

    def sync(self, consumer: Consumer, joined: JoinGroupResponse | None = None) -> None:
        given: dict[str, bytes] = {}
        if joined is not None and joined.leader == joined.member_id and not joined.skip_assignment:
            names = [(member.member_id, member.group_instance_id or member.member_id) for member in joined.members]
            given = {
                name: ",".join(f"{joined.generation_id}:{each}" for each in range(place, 7, len(names))).encode()
                for place, (name, _) in enumerate(names)
            }
            group = self.group()
            if group is not None and group.generation == joined.generation_id:
                self.given[joined.generation_id] = {key: given[name] for name, key in names}
        consumer.joined = None
        answer = self.world.sync(consumer.member_id, consumer.generation, given, group_instance_id=consumer.instance)
        consumer.heard_ms = self.now
        consumer.syncing = answer
        if answer.waits or answer.code is ErrorCode.NONE:
            self.asked.setdefault(consumer.generation, set()).add(consumer.key)
        self.waiting.append((consumer, answer, self.now, answer.waits))
        self.sweep()

    def heartbeat(self, consumer: Consumer) -> ErrorCode:
        if not consumer.member_id:
            return ErrorCode.UNKNOWN_MEMBER_ID
        code = self.world.heartbeat(consumer.member_id, consumer.generation, consumer.instance)
        assert code in (ErrorCode.NONE, *GONE, *REJOIN)
        consumer.heard_ms = self.now
        if code is ErrorCode.NONE and consumer.assignment is not None:
            consumer.calm_ms = self.now
        self.hear(consumer, code)
        return code

    def commits(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        group = self.group()
        is_refused = self.world.log.fail is not ErrorCode.NONE
        committer = Committer(GROUP, consumer.member_id, consumer.instance, consumer.generation)
        codes = self.offsets.commit(self.world, committer, partitions)
        consumer.heard_ms = self.now
        if not codes:
            return
        code = codes[0]
        if code is ErrorCode.NONE:
            assert group is not None
            assert consumer.generation == max(self.highest, group.generation), "a commit of another generation"
            assert group.state.value != "CompletingRebalance", "nothing was assigned yet"
        elif code is ErrorCode.NOT_ENOUGH_REPLICAS or is_refused:
            return
        elif code is ErrorCode.GROUP_ID_NOT_FOUND:
            assert group is None
            return
        elif code is ErrorCode.ILLEGAL_GENERATION:
            assert group is not None
            assert consumer.generation != group.generation
        elif code is ErrorCode.REBALANCE_IN_PROGRESS:
            assert consumer.assignment is None, "it has its assignment"
        else:
            assert code in GONE
        if code is not ErrorCode.REBALANCE_IN_PROGRESS:  # there it says: not yet
            self.hear(consumer, code)

    def hear(self, consumer: Consumer, code: ErrorCode) -> None:
        """What any request may be answered with."""
        self.expect_fencing(consumer, code)
        if code is ErrorCode.FENCED_INSTANCE_ID:
            self.expect_successor(consumer)
            if consumer in self.alive:
                self.alive.remove(consumer)  # it gives up
            consumer.forget()
        elif code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.expect_reason(consumer)
            consumer.forget()
        elif code in REJOIN:
            consumer.assignment = consumer.joined = None
        if code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
            consumer.sign_ms = self.now

    def expect_fencing(self, consumer: Consumer, code: ErrorCode, is_named: bool = True) -> None:
        group = self.group()
        current = None if group is None or consumer.instance is None else group.static_members.get(consumer.instance)
        if is_named and current is not None and consumer.member_id and current != consumer.member_id:
            assert code is ErrorCode.FENCED_INSTANCE_ID, f"a fenced member hears {code.name}"

    def expect_successor(self, consumer: Consumer) -> None:
        """The member that has its name now got an answer that says so, or still waits for it."""
        group = self.group()
        current = None if group is None else group.static_members.get(consumer.instance or "")
        if group is not None and current is not None and not group.members[current].awaits_join:
            assert current in self.owners or current in self.unheard, f"{consumer.name} is fenced by nobody"

    def expect_reason(self, consumer: Consumer) -> None:
        """A member is removed because it was silent, or did not do its part of a rebalance, and only then."""
        if consumer.left or consumer.is_forgotten or consumer.generation <= 0 or self.most < 100:
            return
        is_synced = consumer.key in self.asked.get(consumer.generation, ())
        rebalance_ms = consumer.rebalance_ms * (2 if consumer.instance and is_synced else 1)
        silent_ms, calm_ms = self.now - consumer.sign_ms, self.now - consumer.calm_ms
        assert silent_ms >= SESSION_MS or calm_ms >= rebalance_ms, f"{consumer.name} is removed for nothing"

    def sweep(self) -> None:
        """Look at the answers that have come since the last time."""
        come = [each for each in self.waiting if not each[1].waits]
        if not come:
            return
        self.waiting = [each for each in self.waiting if each[1].waits]
        joined = [each[1].join for each in come if isinstance(each[1].given, JoinGroupResponse)]
        for consumer, answer, *_ in come:
            if isinstance(answer.given, JoinGroupResponse) and answer.code is ErrorCode.NONE:
                self.owners[answer.join.member_id] = consumer
        for generation in {each.generation_id for each in joined if not each.error_code} - self.leaders.keys():
            self.check_new_generation([each for each in joined if each.generation_id == generation])
        for consumer, answer, _, waited in come:
            consumer.heard_ms = max(consumer.heard_ms, answer.at_ms)
            if isinstance(answer.given, JoinGroupResponse):
                self.hear_joined(consumer, answer, waited)
            else:
                self.hear_synced(consumer, answer, waited)

    def check_new_generation(self, answers: list[JoinGroupResponse]) -> None:
        first = answers[0]
        self.leaders[first.generation_id] = first.leader
        if first.generation_id <= self.loaded:
            return
        assert len({each.leader for each in answers}) == 1
        assert len(answers) <= self.most
        (leader,) = (each for each in answers if each.member_id == each.leader)
        there = {each.member_id for each in answers}
        assert there <= {each.member_id for each in leader.members}
        lists = []
        for each in leader.members:
            name, edition, protocol = each.metadata.decode().split()
            assert protocol == leader.protocol_name
            assert each.group_instance_id or each.member_id in there, "the list has a member that is not there"
            lists.append(self.lists[name, int(edition)])
            owner = self.owners.get(each.member_id)
            if owner is not None and owner.member_id == each.member_id and each.member_id in there:
                assert (name, int(edition)) == (owner.name, owner.edition)
        if not self.loaded or len(there) == len(leader.members):  # of absent ones not all survives a restart
            assert leader.protocol_name in winners(lists)

    def hear_joined(self, consumer: Consumer, answer: Answer, waited: bool) -> None:
        told, code = answer.join, answer.code
        if code is ErrorCode.NONE:
            assert told.generation_id > 0
            assert told.leader == told.member_id or not told.members, "only the leader learns who the members are"
            if self.version >= 9 or consumer.instance is None:
                assert told.leader == self.leaders[told.generation_id] or consumer.instance or self.has_static()
            is_done = told.generation_id in self.told
            assert not (is_done and told.leader == told.member_id and told.members and not told.skip_assignment)
        if consumer.joining is not answer:
            return  # nobody reads it
        consumer.joining = None
        if code is ErrorCode.NONE:
            consumer.member_id, consumer.generation = told.member_id, told.generation_id
            consumer.joined, consumer.is_forgotten, consumer.left = told, False, False
            self.past.append((told.member_id, consumer.instance, told.generation_id))
            consumer.calm_ms = consumer.sign_ms = answer.at_ms
        elif code is ErrorCode.MEMBER_ID_REQUIRED:
            consumer.member_id = told.member_id
            self.owners[told.member_id] = consumer
        elif code is ErrorCode.FENCED_INSTANCE_ID:
            self.hear(consumer, code)
        elif code is ErrorCode.UNKNOWN_MEMBER_ID:
            assert not waited or consumer.left, "it waited as the answer said, and is removed"
            consumer.forget()
        elif code is ErrorCode.GROUP_MAX_SIZE_REACHED:
            assert self.most < 100
            consumer.forget()
        elif code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            # After a restart a member is known to offer what its generation agreed on, until it joins again.
            members = self.world.group.members.values()
            assert not set(consumer.protocols).intersection(*[[name for name, _ in each.protocols] for each in members])
            consumer.protocols = LISTS[-1]
            consumer.edition += 1
        else:
            assert code in (
                ErrorCode.NOT_COORDINATOR,
                ErrorCode.NOT_ENOUGH_REPLICAS,
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
            )

    def hear_synced(self, consumer: Consumer, answer: Answer, waited: bool) -> None:
        code = answer.code
        if consumer.syncing is not answer:
            return
        consumer.syncing = None
        if code is ErrorCode.NONE:
            assignment = consumer.assignment = answer.sync.assignment
            generation = consumer.generation
            consumer.sign_ms = answer.at_ms
            assert assignment == self.given[generation].get(consumer.key, b""), "not what the leader gave it"
            for each in assignment.split(b","):
                if each:
                    assert self.told.setdefault(generation, {}).setdefault(each, consumer.key) == consumer.key
            self.told.setdefault(generation, {})
        elif code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
            pass
        else:
            assert code in (*GONE, *REJOIN)
            assert code is not ErrorCode.UNKNOWN_MEMBER_ID or not waited or consumer.left, "it was waiting, not silent"
            self.hear(consumer, code)

    def has_static(self) -> bool:
        group = self.group()
        return group is not None and bool(group.static_members)

    def nobody_waits_too_long(self) -> None:
        if not self.world.log.hold:
            for consumer, _, since_ms, _ in self.waiting:
                waited_ms = self.now - max(since_ms, self.released_ms)
                assert waited_ms <= max(REBALANCE_MS) + SLACK_MS, f"{consumer.name} has waited {waited_ms} ms"

    def the_group_is_sound(self) -> None:
        group = self.group()
        if group is None:
            return
        assert group.generation >= self.highest
        self.highest = group.generation
        members = group.members.values()
        assert {each.instance_id: each.member_id for each in members if each.instance_id} == group.static_members
        assert (group.leader_id in group.members) == bool(members)
        if group.state.value in ("CompletingRebalance", "Stable") and members:
            assert group.protocol_name in winners([[name for name, _ in each.protocols] for each in members])
        if group.state.value in ("CompletingRebalance", "Stable") and group.generation > self.loaded:
            asked = self.asked.get(group.generation, set())
            assert group.pending_sync == {each.member_id for each in members if who(each) not in asked}
        self.nobody_is_missed(group)
        if group.state.value in ("CompletingRebalance", "Stable") and not self.world.log.hold:
            assert not any(each.awaits_join for each in members), "the rebalance is over, and a member still joins"
        for each in members:
            owner = self.owners.get(each.member_id)
            if owner is not None and not each.awaits_join:
                assert {data.split()[0].decode() for _, data in each.protocols} == {owner.name}, "another's offers"
            if owner is not None and not each.awaits_join and not each.awaits_sync:
                # An absent static member is kept by a new generation, and its session begins again with that; so it
                # does when the log was slow to refuse the member that was to take its place.
                sessions = 1 if owner.instance is None else 2
                silent_ms = self.now - (owner.heard_ms if sessions == 1 else max(owner.heard_ms, self.released_ms))
                assert silent_ms <= sessions * SESSION_MS + SLACK_MS, f"{owner.name} is silent for {silent_ms} ms"

    def nobody_is_missed(self, group: ClassicGroup) -> None:
        """When all have joined they get their answers: at once, or after the initial delay."""
        names, since_ms = self.complete
        all_there = all(each.awaits_join for each in group.members.values()) and not group.pending_members
        if group.state.value != "PreparingRebalance" or not all_there or names != frozenset(group.members):
            self.complete = (frozenset(group.members) if all_there else frozenset(), self.now)
        else:
            assert self.now - since_ms <= SLACK_MS, "all have joined, and none gets an answer"


def who(member: ClassicMember) -> str:
    return member.instance_id or member.member_id


def winners(lists: list[tuple[str, ...]] | list[list[str]]) -> set[str]:
    """The protocols that all offer, with the most first votes."""
    common = set(lists[0]).intersection(*lists)
    votes = Counter(next(name for name in each if name in common) for each in lists)
    return {name for name, count in votes.items() if count == max(votes.values())}
