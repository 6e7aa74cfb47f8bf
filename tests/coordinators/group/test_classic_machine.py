"""Random histories of a classic group: members that come, go, hang, fall silent, change and return; a log that is slow
or refuses; a broker that restarts in between.

Clients behave as real ones. The judge knows what each of them sent and received, and when:

- each member of a generation learns of it once; one of them leads and alone gets the members and what they sent;
- its protocol is one that all members offer, and of those the one with the most votes;
- each member gets what the leader assigned to it in that generation, and a partition has one member;
- generations never go back (but one that no member has synced to is forgotten when the broker restarts);
- a join or a sync is answered within the rebalance timeout, whatever the others do, and at once if all are there;
- a member that is silent for a session timeout is removed; one that sends heartbeats and rejoins stays;
- a fenced instance gets the error that says so;
- a member commits in its generation and in no other; offsets are what was acknowledged, also after a restart.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ixion.broker.coordinators.group.commits import Committer
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from tests.coordinators.group.classic_judge import LISTS, REBALANCE_MS, SESSION_MS, SLACK_MS, Consumer, Judge
from tests.coordinators.group.kit import GROUP, World
from tests.coordinators.group.offsets_model import PARTITIONS, PRODUCERS
from tests.lives import lives

pytestmark = pytest.mark.timeout(600)  # a failure is made small for five minutes before it is shown


class Groups(Judge, RuleBasedStateMachine):
    def __init__(self) -> None:
        RuleBasedStateMachine.__init__(self)
        Judge.__init__(self)

    @initialize(
        version=st.sampled_from([3, 5, 9]),
        most=st.sampled_from([100, 100, 3]),
        static=st.sampled_from(["i", "i", None]),
        rebalance_ms=st.lists(st.sampled_from(REBALANCE_MS), max_size=3),
        rounds=st.integers(0, 5),
    )
    def begin(self, version: int, most: int, static: str | None, rebalance_ms: list[int], rounds: int) -> None:
        self.version = version
        self.most = most
        self.world = World(group_initial_rebalance_delay_ms=100, group_max_size=most)
        self.come(static, LISTS[0], rebalance_ms)
        self.all_go_on(rounds)

    # What clients do.

    @rule(
        static=st.sampled_from([None, "i", "j"]),
        protocols=st.sampled_from(LISTS),
        rebalance_ms=st.lists(st.sampled_from(REBALANCE_MS), min_size=1, max_size=3),
    )
    def come(self, static: str | None, protocols: tuple[str, ...], rebalance_ms: list[int]) -> None:
        """One, perhaps of a name, and some more without."""
        for each_ms in rebalance_ms:
            self.count += 1
            self.alive.append(Consumer(f"c{self.count}", static, protocols, each_ms))
            self.step(self.alive[-1])
            static = None

    @precondition(lambda self: self.alive)
    @rule(place=st.integers(0, 5))
    def one_goes_on(self, place: int) -> None:
        self.step(self.pick(place))

    @precondition(lambda self: self.alive)
    @rule(rounds=st.integers(1, 6), commit=st.booleans())
    def all_go_on(self, rounds: int, commit: bool = False) -> None:
        for _ in range(rounds):
            for consumer in list(self.alive):
                self.step(consumer)
                if commit and consumer.generation > 0:
                    self.commits(consumer, PARTITIONS[1:])
            self.world.advance(150)

    @rule(
        before=st.integers(-1, 4),
        after=st.integers(1, 3),
        protocols=st.sampled_from([*LISTS, None, None, None]),
        dead=st.booleans(),
        log=st.sampled_from(["", "", "refuses", "is slow", "is slow and refuses"]),
        then=st.sampled_from(["", "again", "another", "dies"]),
    )
    def an_instance_returns(
        self, before: int, after: int, protocols: tuple[str, ...] | None, dead: bool, log: str, then: str
    ) -> None:
        """Without the id of before: it was restarted, or is there twice. -1: when only the leader has synced."""
        if not any(consumer.instance for consumer in self.alive):
            self.come("i", LISTS[0], REBALANCE_MS[:1])
            self.all_go_on(3)
        self.all_go_on(before)
        if before < 0:
            self.all_change()
            for consumer in list(self.alive):
                if consumer.joined is not None and consumer.joined.leader == consumer.member_id:
                    self.step(consumer)
        known = next((consumer for consumer in self.alive if consumer.instance), None)
        if known is None:
            return  # it has been fenced
        if dead:
            self.alive.remove(known)
        if "slow" in log:
            self.the_log_is_slow()
        if "refuses" in log:
            self.world.log.fail = ErrorCode.NOT_ENOUGH_REPLICAS
        for _ in range(2 if then == "again" else 1):
            self.come(known.instance, protocols or known.protocols, [known.rebalance_ms])
        if then == "another":
            self.come(None, LISTS[0], REBALANCE_MS[:1])
            self.all_go_on(2)
        if "slow" in log:
            self.the_log_goes_on()
        if then == "dies":
            self.alive = [each for each in self.alive if each.instance != known.instance]
            self.pass_time(2 * SESSION_MS + 3_000)
        else:
            self.all_go_on(after)

    @precondition(lambda self: self.alive)
    @rule(place=st.integers(0, 5), partitions=st.sets(st.sampled_from(PARTITIONS), min_size=1))
    def commit(self, place: int, partitions: set[TopicPartition]) -> None:
        consumer = self.pick(place)
        self.sweep()
        if consumer.member_id and consumer.generation >= 0:
            self.commits(consumer, sorted(partitions))

    @rule(place=st.integers(-1, 5), by_instance=st.booleans(), joins=st.booleans())
    def leave(self, place: int, by_instance: bool, joins: bool) -> None:
        if place < 0 or not self.alive:
            self.come(None, LISTS[0], REBALANCE_MS[:1])
        consumer = self.pick(place)  # -1: a member that has just come
        if joins:
            self.alive.remove(consumer)
            self.all_change()
            self.alive.append(consumer)
        self.alive.remove(consumer)
        group = self.group()
        if consumer.member_id:
            has_only_an_id = group is not None and consumer.member_id in group.pending_members
            is_named = not by_instance or consumer.instance is None
            code = self.world.leave(consumer.member_id if is_named else "", consumer.instance)
            assert isinstance(code, ErrorCode)
            assert code is ErrorCode.NONE or not has_only_an_id
            consumer.left = code is ErrorCode.NONE
            for other in [*self.alive, *self.hanging]:
                if consumer.left and consumer.instance is not None and other.instance == consumer.instance:
                    other.left = True  # the name is free again, whichever of them had it
            self.expect_fencing(consumer, code, is_named)
            for request in (consumer.joining, consumer.syncing):
                assert request is None or not request.waits or code is not ErrorCode.NONE, "left without an answer"

    @precondition(lambda self: self.alive)
    @rule(place=st.integers(0, 5))
    def die(self, place: int) -> None:
        self.alive.remove(self.pick(place))

    @precondition(lambda self: self.version > 3)
    @rule(all_join=st.booleans())
    def a_visitor_comes(self, all_join: bool) -> None:
        """It takes an id and is never seen again; a rebalance waits for it no longer than for its session."""
        answer = self.world.join(client="visitor", version=self.version, protocols=dict.fromkeys(LISTS[-1], b""))
        assert answer.code is ErrorCode.MEMBER_ID_REQUIRED or self.most < 100
        if all_join:
            self.all_change()
            self.pass_time(SESSION_MS + SLACK_MS)
            self.all_is_well()
            self.pass_time(3_000)

    @precondition(lambda self: self.alive)
    @rule(place=st.integers(0, 5), has_joined=st.booleans(), ms=st.sampled_from([12_000, 31_000, 62_000]))
    def hang(self, place: int, has_joined: bool, ms: int) -> None:
        """In a rebalance, before it joins or before it syncs: its heart goes on beating, but it does nothing else."""
        self.all_go_on(5)
        if not self.alive:
            return
        consumer = self.pick(place)
        if has_joined:
            self.all_change()
        if consumer in self.alive:
            self.alive.remove(consumer)
        self.hanging.append(consumer)
        if not has_joined:
            self.all_change()
        self.all_go_on(1)
        self.pass_time(ms)

    @precondition(lambda self: self.past)
    @rule(place=st.integers(0, 20), by=st.sampled_from(["heartbeat", "commit", "sync"]))
    def the_past_speaks(self, place: int, by: str) -> None:
        """A delayed request of a member that has another id since, or of another generation."""
        member_id, instance, generation = self.past[place % len(self.past)]
        if by == "commit":
            codes = self.offsets.commit(self.world, Committer(GROUP, member_id, instance, generation), PARTITIONS[:1])
            code = codes[0] if codes else ErrorCode.NONE
        elif by == "sync" and generation < self.highest:
            answer = self.world.sync(member_id, generation, group_instance_id=instance)
            code = ErrorCode.NONE if answer.waits else answer.code
        else:
            code = self.world.heartbeat(member_id, generation, instance)
        group = self.group()
        if member_id in self.owners:
            self.owners[member_id].heard_ms = self.now
        if group is None or group.state.value == "Empty":
            assert code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.GROUP_ID_NOT_FOUND)
        elif instance is not None and group.static_members.get(instance, member_id) != member_id:
            assert code is ErrorCode.FENCED_INSTANCE_ID
        elif member_id not in group.members:
            assert code is ErrorCode.UNKNOWN_MEMBER_ID
        elif generation != group.generation:
            assert code is ErrorCode.ILLEGAL_GENERATION

    @precondition(lambda self: self.alive)
    @rule(place=st.integers(0, 5), what=st.sampled_from(["join", "change", "sync"]))
    def lose_the_answer(self, place: int, what: str) -> None:
        """The connection breaks; the client asks again."""
        consumer = self.pick(place)
        if what == "change":
            self.offer(consumer, LISTS[0])
        elif what == "sync":
            self.all_change()
            if consumer.joined is not None:
                joined = consumer.joined
                self.sync(consumer, joined)
                if consumer.syncing is not None:
                    self.sync(consumer, joined)
                return
        if consumer in self.alive:  # and has not just heard that it is fenced
            consumer.joining = consumer.syncing = consumer.joined = consumer.assignment = None
            self.step(consumer)

    @precondition(lambda self: self.alive)
    @rule(place=st.integers(0, 5), protocols=st.sampled_from(LISTS))
    def change(self, place: int, protocols: tuple[str, ...]) -> None:
        """It offers something else from now on, and joins again to say so."""
        self.offer(self.pick(place), protocols)

    def offer(self, consumer: Consumer, protocols: tuple[str, ...]) -> None:
        self.sweep()
        if consumer in self.alive and consumer.joining is None and consumer.syncing is None:
            consumer.protocols = protocols
            consumer.edition += 1
            self.join(consumer)

    def all_change(self) -> None:
        for consumer in list(self.alive):
            self.offer(consumer, LISTS[0])

    @rule(kind=st.sampled_from(["connect", "consumer"]))
    def a_stranger_joins(self, kind: str) -> None:
        """It speaks of nothing that the members understand, or means something else by it."""
        group = self.group()
        if group is not None and group.members and len(group.members) < self.most:
            offers = {"else": b""} if kind == "consumer" else dict.fromkeys(LISTS[-1], b"")
            answer = self.world.join(client="stranger", protocol_type=kind, protocols=offers)
            assert answer.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    @rule(partitions=st.sets(st.sampled_from(PARTITIONS), min_size=1))
    def an_outsider_commits(self, partitions: set[TopicPartition]) -> None:
        group = self.group()
        is_free = group is None or group.state.value == "Empty"
        failing = self.world.log.fail is not ErrorCode.NONE
        codes = self.offsets.commit(self.world, Committer(GROUP), sorted(partitions))
        if not is_free:
            assert set(codes) == {ErrorCode.UNKNOWN_MEMBER_ID}
        elif not self.world.log.held and not failing:
            assert set(codes) == {ErrorCode.NONE}

    @precondition(lambda self: not self.world.log.hold)
    @rule(producer_id=st.sampled_from(PRODUCERS), partitions=st.sets(st.sampled_from(PARTITIONS), min_size=1))
    def commit_in_a_transaction(self, producer_id: int, partitions: set[TopicPartition]) -> None:
        self.offsets.commit(self.world, Committer(GROUP, producer_id=producer_id), sorted(partitions))

    @precondition(lambda self: self.offsets.pending)
    @rule(producer_id=st.sampled_from(PRODUCERS), committed=st.booleans())
    def end_a_transaction(self, producer_id: int, committed: bool) -> None:
        self.offsets.end_transaction(self.world, producer_id, committed)

    @precondition(lambda self: not self.world.log.hold)
    @rule(committed=st.booleans(), restarts=st.booleans())
    def a_transaction_is_overtaken(self, committed: bool, restarts: bool) -> None:
        """Of two commits the one that comes later in the log counts, whichever becomes visible first."""
        self.commit_in_a_transaction(PRODUCERS[0], {PARTITIONS[0]})
        if self.alive:
            self.commit(0, {PARTITIONS[0]})
        self.an_outsider_commits({PARTITIONS[0]})
        if restarts:
            self.restart()
        self.end_a_transaction(PRODUCERS[0], committed)

    @precondition(lambda self: not self.world.log.hold)
    @rule(partitions=st.sets(st.sampled_from(PARTITIONS), min_size=1))
    def delete_offsets(self, partitions: set[TopicPartition]) -> None:
        asked = sorted(partitions)
        told: list[ErrorCode] = []
        self.world.groups.offsets.delete(GROUP, asked, lambda code, codes: told.extend(codes if not code else [code]))
        if len(told) == len(asked):
            self.offsets.forget([each for each, code in zip(asked, told, strict=True) if code is ErrorCode.NONE])

    @precondition(lambda self: not self.world.log.hold)
    @rule()
    def delete_the_group(self) -> None:
        group = self.group()
        self.sweep()
        state = None if group is None else group.state.value
        failing = self.world.log.fail is not ErrorCode.NONE
        told: list[ErrorCode] = []
        self.world.groups.admin.delete(GROUP, told.append)
        if state is None:
            assert told == [ErrorCode.GROUP_ID_NOT_FOUND]
        elif state != "Empty":
            assert told == [ErrorCode.NON_EMPTY_GROUP]
        elif not failing:
            assert told == [ErrorCode.NONE]
            self.offsets.forget(PARTITIONS)
            self.offsets.pending.clear()
            self.begin_anew(0)

    # What the world does.

    @rule(ms=st.sampled_from([150, 3_000, 15_000, 31_000]))
    def time_passes(self, ms: int) -> None:
        self.pass_time(ms)

    @precondition(lambda self: self.alive)
    @rule(by_commits=st.booleans())
    def signs_of_life(self, by_commits: bool) -> None:
        """A member that sends them more often than its session timeout is never removed for silence."""
        self.all_go_on(5)
        for _ in range(3):
            self.pass_time(6_000)
            for consumer in list(self.alive):
                if by_commits and consumer.assignment is not None:
                    self.commits(consumer, PARTITIONS[:1])
                else:
                    self.step(consumer)

    @rule()
    def the_log_is_slow(self) -> None:
        self.world.log.hold = True

    @rule()
    def the_log_goes_on(self) -> None:
        self.world.log.release()
        self.world.run()
        self.released_ms = self.now

    @rule(rounds=st.integers(0, 3), restarts=st.booleans())
    def the_log_refuses(self, rounds: int, restarts: bool) -> None:
        """The next record, whenever that comes."""
        self.world.log.fail = ErrorCode.NOT_ENOUGH_REPLICAS
        if self.alive:
            self.change(0, LISTS[0])
        self.all_go_on(rounds)
        if restarts:
            self.restart()

    @precondition(lambda self: self.alive)
    @rule(rounds=st.integers(1, 5), protocols=st.sampled_from(LISTS))
    def somebody_comes_while_the_log_is_slow(self, rounds: int, protocols: tuple[str, ...]) -> None:
        self.the_log_is_slow()
        self.all_go_on(2)
        self.come(None, protocols, REBALANCE_MS[:1])
        self.all_go_on(rounds)
        self.the_log_goes_on()

    @rule(settled=st.booleans(), fewer=st.sampled_from([False, False, True]))
    def restart(self, settled: bool = False, fewer: bool = False) -> None:
        if settled:
            self.all_go_on(5)
        self.sweep()
        if fewer:
            self.most = 3
        self.world = self.world.restart(group_initial_rebalance_delay_ms=100, group_max_size=self.most)
        self.released_ms = self.now
        group = self.group()
        generation = 0 if group is None else group.generation
        self.unheard |= set() if group is None else group.members.keys() - self.owners.keys()
        if group is not None and len(group.members) > self.most:
            assert group.state.value == "PreparingRebalance", "some are to go"
        assert generation >= max(self.told, default=0), "a generation that members live in is forgotten"
        self.begin_anew(generation)
        for consumer in self.owners.values():
            consumer.heard_ms = self.now
        self.sweep()
        for consumer in list(self.alive):
            if consumer.assignment is not None:
                self.sync(consumer)  # it asks once more: the answer has not changed

    @rule()
    def all_settle(self) -> None:
        """When all live clients go on, all end up in one generation, and it lasts."""
        self.the_log_goes_on()
        self.world.log.fail = ErrorCode.NONE
        for round_ in range(50):
            for consumer in list(self.alive):
                self.step(consumer)
            self.pass_time(3_000)
            if round_ > 5 and self.is_settled():
                break
        assert not self.waiting, f"{len(self.waiting)} requests wait for ever"
        group = self.group()
        present = [] if group is None else [each for each in self.hanging if each.member_id in group.members]
        settled = [consumer for consumer in self.alive if consumer.assignment is not None]
        assert len(settled) >= min(len(self.alive), self.most - len(present)), "a member waits for ever"
        generations = {consumer.generation for consumer in settled}
        assert len(generations) <= 1
        if settled:
            assert group is not None
            assert set(group.members) == {each.member_id for each in [*settled, *present]}
            for _ in range(5):
                self.pass_time(3_000)
                for consumer in settled:
                    assert self.heartbeat(consumer) is ErrorCode.NONE
        if settled and not present:
            for consumer in settled:
                consumer.edition += 1
                self.join(consumer)
            assert not self.waiting, "all are there, and still a member waits"

    # What must hold.

    @invariant()
    def all_is_well(self) -> None:
        self.sweep()
        self.nobody_waits_too_long()
        self.the_group_is_sound()
        self.offsets.check(self.world)


TestGroups = Groups.TestCase
TestGroups.settings = settings(max_examples=lives(60), stateful_step_count=40, deadline=None)
