"""Whatever clients, disks and clocks do: a transaction ends alike in all its partitions, and epochs never go back.

A few producers, of transaction.version 2 and older, share two transactional ids. They begin, write, commit and abort as
good clients do, send requests again and hold some back; new ones take over. Meanwhile appends to the log and writes of
markers are delayed, refused, or lost with the broker, which starts again on what was stored. A model of the partitions
takes the markers and the writes that verification lets through, and is the judge:

- every write belongs to one transaction; all writes of one transaction get the same outcome, in every partition;
- a transaction is committed if its client got that answer, and aborted if it got that one;
- a marker never ends a transaction that began after the outcome was decided;
- a write that its producer did not announce, or that comes too late, opens nothing that nobody ends;
- what ran out of time is not committed, what has ended one way is not said to have ended the other;
- a producer that was replaced cannot go on;
- the epochs a transactional id hands out rise, or its producer id changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ixion.broker.coordinators.txn.markers import Marker
from ixion.broker.coordinators.txn.snapshot import Snapshot
from ixion.broker.coordinators.txn.states import SETTLED
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from tests.coordinators.txn.world import World
from tests.lives import lives

pytestmark = pytest.mark.timeout(600)  # a failure is made small for five minutes before it is shown
NAMES = ["x", "yy"]
PARTITIONS = [("t", 0), ("t", 1), ("u", 0)]


@dataclass
class Life:
    """One transaction as its client lives it."""

    number: int
    told: bool | None = None  # what EndTxn was answered with
    asked: set[bool] = field(default_factory=set)  # ends that were sent
    announced: set[TopicPartition] = field(default_factory=set)  # by an older client, and answered
    writes: dict[TopicPartition, bool | None] = field(default_factory=dict)  # partition: outcome, None while open


@dataclass
class Client:
    """`version` 2 raises the epoch with every transaction and adds partitions by writing; 0 announces them first."""

    name: str
    version: int
    producer_id: int
    epoch: int
    life: Life


class Partition:
    """What a leader knows: the epoch and the open transaction of each producer."""

    def __init__(self) -> None:
        self.epochs: dict[int, int] = {}
        self.open: dict[int, Life] = {}


class Transactions(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.partitions = {key: Partition() for key in PARTITIONS}
        self.lives: list[Life] = []
        self.handed_out: dict[str, tuple[int, int]] = {}
        self.seen_markers = 0
        self.next_life = 0
        self.clients: list[Client] = []  # those that are not fenced yet
        self.sent: list[tuple[str, int, int, bool]] = []  # EndTxn requests that may arrive once more
        self.answered: list[tuple[str, int, int, bool]] = []  # of these, the ones that were answered with NONE

    def teardown(self) -> None:
        self.settle()
        for life in self.lives:
            outcomes = set(life.writes.values())
            assert len(outcomes) <= 1, f"torn: {life}"
            if life.told is not None and life.writes:
                assert outcomes == {life.told}, f"told otherwise: {life}"
        self.world.close()

    def settle(self) -> None:
        """Everything that delays ends; whatever is open runs out of time."""
        world = self.world
        world.log.fail_with = ErrorCode.NONE
        world.markers.broken.clear()
        world.log.let_go()
        world.markers.let_go()
        for _ in range(3):
            world.advance(100_000)
        self.apply_markers()
        for partition in self.partitions.values():
            assert not partition.open, "a transaction that nobody ends"

    def apply_markers(self) -> None:
        for key, marker in self.world.markers.written[self.seen_markers :]:
            self.apply(self.partitions[key], key, marker)
        self.seen_markers = len(self.world.markers.written)

    @staticmethod
    def apply(partition: Partition, key: TopicPartition, marker: Marker) -> None:
        assert marker.epoch >= partition.epochs.get(marker.producer_id, -1), "a marker of the past"
        partition.epochs[marker.producer_id] = marker.epoch
        life = partition.open.pop(marker.producer_id, None)
        if life is not None:
            life.writes[key] = marker.commit

    def new_life(self) -> Life:
        self.next_life += 1
        self.lives.append(Life(self.next_life))
        return self.lives[-1]

    @initialize(versions=strategies.lists(strategies.sampled_from([2, 0]), max_size=3))
    def begin(self, versions: list[int]) -> None:
        self.world.turn()
        for place, version in enumerate(versions):
            self.take_over(NAMES[place % 2], version)

    # What clients do.

    @rule(name=strategies.sampled_from(NAMES), version=strategies.sampled_from([2, 2, 0]))
    def take_over(self, name: str, version: int) -> None:
        code, producer_id, epoch = self.world.init(name)
        self.apply_markers()
        if code == "NONE":
            self.hand_out(name, producer_id, epoch)
            self.clients.append(Client(name, version, producer_id, epoch, self.new_life()))
            del self.clients[:-3]  # the others are heard of no more

    @precondition(lambda self: self.clients)
    @rule(data=strategies.data())
    def go_on_after_an_error(self, data: strategies.DataObject) -> None:
        """KIP-360: the same producer asks for a new epoch; what it had open is aborted."""
        client = data.draw(strategies.sampled_from(self.clients))
        is_replaced = (client.producer_id, client.epoch) != self.handed_out[client.name]
        code, producer_id, epoch = self.world.init(client.name, client.producer_id, client.epoch)
        self.apply_markers()
        assert code != "NONE" or not is_replaced, "another producer took over"
        if code == "NONE":
            client.producer_id, client.epoch = producer_id, epoch
            client.life = self.new_life()
            self.hand_out(client.name, producer_id, epoch, again=True)
        elif code == "PRODUCER_FENCED":
            self.clients.remove(client)

    def hand_out(self, name: str, producer_id: int, epoch: int, again: bool = False) -> None:
        last_id, last_epoch = self.handed_out.get(name, (-1, -1))
        if producer_id == last_id:
            assert epoch > last_epoch or (again and epoch == last_epoch), f"{name}: epoch {last_epoch} -> {epoch}"
        else:
            assert producer_id > last_id
        self.handed_out[name] = (producer_id, epoch)

    @precondition(lambda self: self.clients)
    @rule(
        data=strategies.data(),
        keys=strategies.sets(strategies.sampled_from(PARTITIONS), min_size=1),
        end=strategies.sampled_from([None, True, False, True, False]),
    )
    def transact(self, data: strategies.DataObject, keys: set[TopicPartition], end: bool | None) -> None:
        """Some writes, and perhaps the end: commit or abort."""
        client = data.draw(strategies.sampled_from(self.clients))
        if not client.life.asked:
            for key in sorted(keys):
                self.write(client, key)
        if end is not None and (not client.life.asked or end in client.life.asked):
            self.end(client, end)

    @precondition(lambda self: self.clients)
    @rule(data=strategies.data(), keys=strategies.sets(strategies.sampled_from(PARTITIONS), min_size=2))
    def a_transaction_takes_too_long(self, data: strategies.DataObject, keys: set[TopicPartition]) -> None:
        """It is aborted, whatever its producer goes on to do."""
        client = data.draw(strategies.sampled_from(self.clients))
        life = client.life
        if life.asked or self.world.log.holding or self.world.log.fail_with:
            return
        first, *others = sorted(keys)
        self.write(client, first)
        is_open = life.writes.get(first, False) is None
        self.time_passes(80_000)
        for key in others:
            self.write(client, key)
        self.end(client, True)
        assert not is_open or life.told is not True, "it ran out of time"

    @precondition(lambda self: any(client.version < 2 for client in self.clients))
    @rule(data=strategies.data(), key=strategies.sampled_from(PARTITIONS))
    def a_write_comes_unannounced(self, data: strategies.DataObject, key: TopicPartition) -> None:
        """Of an older client: perhaps held back from a transaction that has ended."""
        client = data.draw(strategies.sampled_from([each for each in self.clients if each.version < 2]))
        if not client.life.asked and client.producer_id not in self.partitions[key].open:
            self.write(client, key, announces=False)

    @precondition(lambda self: self.answered)
    @rule(data=strategies.data())
    def the_opposite_is_asked_for(self, data: strategies.DataObject) -> None:
        name, producer_id, epoch, commit = data.draw(strategies.sampled_from(self.answered))
        code, *_ = self.world.end(name, producer_id, epoch, not commit)
        self.apply_markers()
        assert code != "NONE", "it has ended otherwise"

    def write(self, client: Client, key: TopicPartition, announces: bool = True) -> None:
        partition = self.partitions[key]
        producer_id, epoch, life = client.producer_id, client.epoch, client.life

        def append() -> None:
            if epoch < partition.epochs.get(producer_id, -1):
                return  # INVALID_PRODUCER_EPOCH
            assert partition.open.get(producer_id, life) is life, "two transactions in one"
            partition.epochs[producer_id] = epoch
            partition.open[producer_id] = life
            life.writes[key] = None

        def verified(codes: dict[TopicPartition, ErrorCode]) -> None:
            self.apply_markers()
            if codes[key] == ErrorCode.NONE:
                append()

        def announced(code: ErrorCode) -> None:
            self.apply_markers()
            if code == ErrorCode.NONE:
                life.announced.add(key)

        if client.version < 2 and key not in life.announced and announces:
            self.world.coordinator.add_partitions(client.name, producer_id, epoch, [key], 0, announced)
            if key not in life.announced:
                return  # a good client waits for the answer
        if partition.open.get(producer_id) is not None and partition.epochs[producer_id] == epoch:
            append()
        else:
            produce = 12 if client.version == 2 else 11
            self.world.coordinator.verify_produce(client.name, producer_id, epoch, [key], produce, verified)

    def end(self, client: Client, commit: bool) -> None:
        request = (client.name, client.producer_id, client.epoch, commit)
        if client.version == 2:
            self.sent.append(request)  # for older ones a latecomer is a hole that cannot be closed
        life = client.life
        life.asked.add(commit)

        def answered(code: ErrorCode, producer_id: int, epoch: int) -> None:
            if code == ErrorCode.NONE:
                life.told = commit
                if client.version == 2:
                    self.answered.append(request)
                    assert (producer_id, epoch) > request[1:3], "the next transaction has an epoch of its own"
                self.hand_out(client.name, producer_id, epoch, again=True)
                if client.life is life:
                    client.producer_id, client.epoch, client.life = producer_id, epoch, self.new_life()
            elif code not in (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_COORDINATOR):
                if code == ErrorCode.INVALID_TXN_STATE and not life.writes:
                    life.asked.discard(commit)  # a commit of nothing: the client would not have sent it
                else:
                    self.clients = [other for other in self.clients if other is not client]

        self.world.coordinator.end(*request[:3], commit, client.version, answered)
        self.apply_markers()

    @precondition(lambda self: self.sent)
    @rule(data=strategies.data())
    def arrive_late(self, data: strategies.DataObject) -> None:
        """An end that was held back, or sent again, must not end what nobody asked to end so."""
        name, producer_id, epoch, commit = data.draw(strategies.sampled_from(self.sent))
        for client in self.clients:
            is_later = (client.producer_id, client.epoch) != (producer_id, epoch)
            if client.name == name and is_later and not client.life.asked:
                self.write(client, PARTITIONS[0])
        alive = [life for life in self.lives if commit not in life.asked and None in life.writes.values()]
        before = {life.number: dict(life.writes) for life in alive}
        self.world.end(name, producer_id, epoch, commit)
        self.apply_markers()
        after = {life.number: dict(life.writes) for life in alive}
        assert after == before, "a transaction that nobody asked to end so was ended by a latecomer"

    @rule()
    def all_goes_well(self) -> None:
        """Without delays and faults, a producer with nothing open that was not replaced commits what it writes."""
        self.appends_fail(False)
        self.world.markers.broken.clear()
        self.appends_go_on()
        self.markers_go_on()
        self.time_passes(200)  # for what is tried again
        for client in list(self.clients):
            life = client.life
            now = self.world.coordinator.describe(client.name)
            if not isinstance(now, Snapshot) or now.state not in SETTLED or life.asked or life.writes:
                continue
            if (now.producer_id, now.epoch) == (client.producer_id, client.epoch):
                for key in PARTITIONS[:2]:
                    self.write(client, key)
                self.end(client, True)
                assert life.told is True
                assert life.writes == dict.fromkeys(PARTITIONS[:2], True), "the answer was that all is committed"

    # What the world does.

    @rule()
    def appends_wait(self) -> None:
        self.world.log.holding = True

    @rule()
    def appends_go_on(self) -> None:
        self.world.log.let_go()
        self.apply_markers()

    @rule(failing=strategies.booleans())
    def appends_fail(self, failing: bool) -> None:
        self.world.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS if failing else ErrorCode.NONE

    @precondition(lambda self: self.clients)
    @rule(data=strategies.data(), commit=strategies.booleans())
    def an_end_is_not_stored_and_the_broker_dies(self, data: strategies.DataObject, commit: bool) -> None:
        client = data.draw(strategies.sampled_from(self.clients))
        self.appends_fail(True)
        if not client.life.asked:
            self.end(client, commit)
        self.appends_fail(False)
        self.the_broker_dies(True)

    @rule()
    def markers_wait(self) -> None:
        self.world.markers.holding = True

    @rule()
    def markers_go_on(self) -> None:
        self.world.markers.let_go()
        self.apply_markers()

    @rule(key=strategies.sampled_from(PARTITIONS), broken=strategies.booleans())
    def a_partition_fails(self, key: TopicPartition, broken: bool) -> None:
        if broken:
            self.world.markers.broken[key] = ErrorCode.NOT_LEADER_OR_FOLLOWER
        else:
            self.world.markers.broken.pop(key, None)

    @rule(ms=strategies.sampled_from([20, 100, 10_000, 70_000]))
    def time_passes(self, ms: int) -> None:
        self.world.advance(ms)
        self.apply_markers()

    @rule(lost=strategies.booleans())
    def the_broker_dies(self, lost: bool) -> None:
        """Appends on their way are lost, or are in the log without an answer."""
        if lost:
            self.world.log.held.clear()
        self.world.coordinator.stop()
        self.world.log.let_go()
        self.world.markers.held.clear()
        self.world.start()
        self.world.turn()
        self.apply_markers()

    @invariant()
    def nothing_is_torn(self) -> None:
        for life in self.lives:
            decided = {outcome for outcome in life.writes.values() if outcome is not None}
            assert len(decided) <= 1, f"torn: {life}"


TestTransactions = Transactions.TestCase
TestTransactions.settings = settings(max_examples=lives(60), stateful_step_count=40, deadline=None)
