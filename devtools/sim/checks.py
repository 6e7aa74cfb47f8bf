"""What must hold, whatever fails. A check says what is wrong, by the name of the invariant."""

from __future__ import annotations

from typing import Final, Protocol

from devtools.sim.broken import Broken
from devtools.sim.disk import SimFiles
from devtools.sim.workload import Load
from devtools.sim.world import World
from ixion.broker.log.log import Log
from ixion.broker.log.reader import read
from ixion.broker.log.view import Bound
from ixion.broker.metadata import paths
from ixion.broker.metadata.topic_node import PartitionState
from ixion.broker.replica.partition import Partition
from ixion.broker.startup.broker import Broker
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.records.batches import iter_batches

Entry = tuple[int, bytes]  # leader epoch, value


class Entries(Protocol):
    def __call__(
        self, broker: Broker, key: TopicPartition, start: int = 0, below: int = 1 << 60
    ) -> dict[int, Entry]: ...


NEW_LIFE_S: Final = 5.0
GONE_S: Final = 1.0


class Watcher:
    """Looks at the cluster from time to time, and remembers what consumers could have read."""

    def __init__(self, world: World, keys: list[TopicPartition], load: Load, entries: Entries | None = None) -> None:
        """`entries` gives what a replica has, by offset; a test makes its own."""
        self._world = world
        self._entries = entries or entries_of
        self._keys = keys
        self._load = load
        self._seen: dict[TopicPartition, dict[int, Entry]] = {key: {} for key in keys}
        self._states: dict[TopicPartition, PartitionState] = {}
        self._looked: dict[TopicPartition, int] = {}  # the leader epoch of the last whole look
        self._gone_s: dict[int, float] = {}  # brokers that are not registered, since
        self._obeyed: dict[str, int] = {}  # the newest controller whose request a broker got since its start
        self._broken: Broken | None = None
        world.moments.on_change.append(self._state_changed)
        world.moments.on_write.append(self._state_written)

    def _state_changed(self, key: TopicPartition) -> None:
        try:
            if key in self._seen:
                self._look_at(key)
        except Broken as broken:
            self._broken = self._broken or broken  # the next look says so

    def _state_written(self, key: TopicPartition, state: PartitionState, elected: int) -> None:
        if state.controller_epoch != elected:
            self._broken = self._broken or Broken(
                "OneController",
                f"{key}: controller {state.controller_epoch} has written, and {elected} had been elected",
            )

    def look(self) -> None:
        if self._broken is not None:
            raise self._broken
        for key in self._keys:
            self._look_at(key)
        world = self._world
        for number, broker in world.running():
            self.obeys(f"b{number}/{world.slots[number].starts}", broker.parts.image.controller_epoch)
        world.may_lose = not world.losing and is_safe(world, self._keys)

    def obeys(self, life: str, controller_epoch: int) -> None:
        """A broker has not gone back to a controller of the past."""
        newest = self._obeyed.get(life, controller_epoch)
        if controller_epoch < newest:
            raise Broken("OneController", f"{life} obeys controller {controller_epoch}, and has obeyed {newest}")
        self._obeyed[life] = controller_epoch

    def _look_at(self, key: TopicPartition) -> None:
        state = self._world.state(key)
        if state is None:
            return
        if state.leader >= 0 and state.leader not in state.isr:
            raise Broken("LeaderInIsr", f"{key}: leader {state.leader} is not in {state.isr}")
        if not state.isr:
            raise Broken("LeaderInIsr", f"{key}: no replica is in sync")
        before = self._states.get(key)
        if before is not None and state.leader_epoch < before.leader_epoch:
            raise Broken("MonotonicEpochs", f"{key}: leader epoch {state.leader_epoch} < {before.leader_epoch}")
        if before is not None and state.controller_epoch < before.controller_epoch:
            raise Broken(
                "OneController", f"{key}: controller epoch {state.controller_epoch} after {before.controller_epoch}"
            )
        self._live_isr(key, state, before)
        if before is not None and state.leader_epoch == before.leader_epoch and state.leader != before.leader:
            raise Broken("OneLeaderPerEpoch", f"{key}: {before.leader} and {state.leader} in {state.leader_epoch}")
        self._states[key] = state
        for number, broker in self._world.running():
            partition = broker.parts.replicas.partitions.get(key)
            if partition is not None and partition.leads and is_readable(partition.log):
                self._look_at_leader(key, state, number, broker, partition)

    def _look_at_leader(
        self, key: TopicPartition, state: PartitionState, number: int, broker: Broker, partition: Partition
    ) -> None:
        seen = self._seen[key]
        high = partition.log.high_watermark
        for offset, entry in self._entries(broker, key, len(seen) and max(seen) + 1, high).items():
            seen.setdefault(offset, entry)
        if partition.leader_epoch != state.leader_epoch or state.leader != number:
            return  # it does not know yet that it leads no more
        anew = self._looked.get(key) != state.leader_epoch
        self._looked[key] = state.leader_epoch
        # ConsistentRead: what a leader showed to consumers is shown by every later leader, at the same offset.
        last = max(min(max(seen, default=0), high - 1), 0)
        start = 0 if anew else max(last - 20, 0)
        found = self._entries(broker, key, start, last + 1)
        for offset, entry in found.items():
            if seen.get(offset, entry) != entry:
                raise Broken("ConsistentRead", f"{key} at {offset}: was {seen[offset]}, b{number} has {entry}")
        if anew:
            self._complete_leader(key, number, broker)
        self._strong_isr(key, state, number, broker, start, high)

    def _live_isr(self, key: TopicPartition, state: PartitionState, before: PartitionState | None) -> None:
        """No broker joins the ISR that has not been registered for a second or more."""
        world = self._world
        registered = {int(name) for name in world.tree.own.children(paths.BROKERS)}
        for number in world.slots:
            if number in registered:
                self._gone_s.pop(number, None)
                continue
            # It may have registered, and have lost its session again, since the last look.
            gone_s = max(self._gone_s.setdefault(number, world.loop.now_s), world.moments.registered_s.get(number, 0.0))
            joined = before is not None and number in state.isr and number not in before.isr
            if joined and world.loop.now_s - gone_s > GONE_S:
                raise Broken("LiveIsr", f"{key}: b{number} is in {state.isr}, and is not registered")

    def _complete_leader(self, key: TopicPartition, number: int, broker: Broker) -> None:
        """LeaderCompleteness: a new leader has everything that was acknowledged."""
        log = self._entries(broker, key)
        for (_, where), sent in self._load.sent.items():
            if where == key and not sent.loose:
                for value, offset in sent.acknowledged.items():
                    if log.get(offset, (0, b""))[1] != value:
                        raise Broken(
                            "LeaderCompleteness",
                            f"{key}: {value!r}, acknowledged at {offset}, where new leader b{number} has"
                            f" {log.get(offset)}",
                        )

    def _strong_isr(
        self, key: TopicPartition, state: PartitionState, number: int, broker: Broker, start: int, high: int
    ) -> None:
        """Below the leader's high watermark, all replicas that are in sync according to the tree are equal."""
        expected = self._entries(broker, key, start, high)
        for other, follower in self._world.running():
            partition = follower.parts.replicas.partitions.get(key)
            if other == number or other not in state.isr or partition is None or not is_readable(partition.log):
                continue
            if partition.leader_epoch != state.leader_epoch:
                continue  # it will be cut, or has started anew and is about to leave the ISR
            found = self._entries(follower, key, start, high)
            for offset, entry in expected.items():
                if found.get(offset) != entry and not self._is_new_life(other):
                    raise Broken("StrongIsr", f"{key} at {offset}: b{number} {entry}, b{other} {found.get(offset)}")

    def _is_new_life(self, number: int) -> bool:
        """The tree's ISR is of an earlier life: the controller has not seen the new registration yet."""
        slot = self._world.slots[number]
        return slot.broker is None or (slot.lives > 1 and self._world.loop.now_s - slot.started_s < NEW_LIFE_S)

    def final(self) -> None:
        """When all is healthy again: every replica has everything that was acknowledged, once and in order."""
        for key in self._keys:
            replicas = self._world.replicas(key).all
            logs = {
                number: self._entries(broker, key) for number, broker in self._world.running() if number in replicas
            }
            self._same(key, logs)
            log = next(iter(logs.values()))
            for offset, entry in self._seen[key].items():
                if log.get(offset) != entry:
                    raise Broken(
                        "ConsistentRead", f"{key} at {offset}: {entry} was read, the log has {log.get(offset)}"
                    )
            self._complete(key, log, self._load)

    def _same(self, key: TopicPartition, logs: dict[int, dict[int, Entry]]) -> None:
        items = sorted(logs.items())
        first, expected = items[0]
        for number, log in items[1:]:
            if log != expected:
                offset = min(set(log) ^ set(expected) or {o for o in log if log[o] != expected.get(o)})
                raise Broken(
                    "LogMatching",
                    f"{key} at {offset}: b{first} has {expected.get(offset)}, b{number} has {log.get(offset)}",
                )

    def _complete(self, key: TopicPartition, log: dict[int, Entry], load: Load) -> None:
        places: dict[bytes, list[int]] = {}
        for offset, (_, value) in sorted(log.items()):
            places.setdefault(value, []).append(offset)
        for (number, where), sent in load.sent.items():
            if where != key or sent.loose:
                continue
            for value, code in sent.failed.items():
                if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                    what = "does not know that it has it" if value in places else "lacks what came before it"
                    raise Broken("Sequence", f"{key}: {value!r} was refused: the leader {what}")
            last = -1
            for value in sent.values:
                found = places.get(value, [])
                if len(found) > 1:
                    raise Broken("OnceOnly", f"{key}: {value!r} is at {found}")
                if value in sent.acknowledged:
                    if not found:
                        at = sent.acknowledged[value]
                        raise Broken("NoAcknowledgedLoss", f"{key}: {value!r}, acknowledged at {at}, is not there")
                    if sent.acknowledged[value] != found[0]:
                        at = sent.acknowledged[value]
                        raise Broken("MonotonicOffsets", f"{key}: {value!r}, acknowledged at {at}, is at {found[0]}")
                if found:
                    if found[0] < last:
                        raise Broken("Order", f"{key}: {value!r} of producer {number} is at {found[0]}, after {last}")
                    last = found[0]


def entries_of(broker: Broker, key: TopicPartition, start: int = 0, below: int = 1 << 60) -> dict[int, Entry]:
    """By offset, what a replica has."""
    partition = broker.parts.replicas.partitions.get(key)
    found: dict[int, Entry] = {}
    if partition is None or not is_readable(partition.log):
        return found
    disk = broker.parts.options.files
    assert isinstance(disk, SimFiles)
    with disk.looked_at():
        return _read(partition.log, start, below)


def is_readable(log: Log) -> bool:
    """Whether a broker reads it: its disk works, and no cut was interrupted by a fault of the disk."""
    return not log.directory.offline and not log.closed and log.truncating < 0


def _read(log: Log, start: int, below: int) -> dict[int, Entry]:
    found: dict[int, Entry] = {}
    offset = max(start, log.log_start)
    while offset < min(below, log.end_offset):
        before = offset
        for view in iter_batches(read(log, offset, 1 << 20, Bound.END).records):
            for each in view:
                if start <= each.offset < below:
                    found[int(each.offset)] = (int(view.leader_epoch), bytes(each.value or b""))
            offset = int(view.last_offset) + 1
        if offset == before:
            break
    return found


def is_safe(world: World, keys: list[TopicPartition]) -> bool:
    """Whether every replica is in sync, in its present life: then one broker may lose its disk."""
    if not world.all_know_all():
        return False
    for key in keys:
        state, replicas = world.state(key), world.replicas(key)
        if state is None or set(state.isr) != set(replicas.all) or replicas.adding or replicas.removing:
            return False
        for number, broker in world.running():
            if number not in replicas.all:
                continue
            partition = broker.parts.replicas.partitions.get(key)
            if partition is None or partition.leader_epoch != state.leader_epoch:
                return False
    return True


def behind(world: World, keys: list[TopicPartition]) -> list[str]:
    """What is not healthy: partitions without a leader, or with replicas that are not in sync."""
    if not world.all_know_all():
        return ["not every broker knows the others"]
    wrong: list[str] = []
    for key in keys:
        state, replicas = world.state(key), world.replicas(key)
        if state is None or state.leader < 0 or set(state.isr) != set(replicas.all):
            wrong.append(f"{key}: {state}")
            continue
        ends = {
            number: partition.log.end_offset
            for number, broker in world.running()
            if number in replicas.all and (partition := broker.parts.replicas.partitions.get(key)) is not None
        }
        if len(set(ends.values())) != 1 or len(ends) != len(replicas.all):
            wrong.append(f"{key}: ends {ends}")
        elif uncommitted(world, key, state.leader):
            wrong.append(f"{key}: {uncommitted(world, key, state.leader)} records are not committed")
    return wrong


def uncommitted(world: World, key: TopicPartition, leader: int) -> int:
    """Records of the leader above its high watermark."""
    broker = world.slots[leader].broker if leader in world.slots else None
    partition = None if broker is None else broker.parts.replicas.partitions.get(key)
    return 0 if partition is None else partition.log.end_offset - partition.log.high_watermark
