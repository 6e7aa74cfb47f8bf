"""What must hold, whatever fails. A check says what is wrong, by the name of the invariant."""

from __future__ import annotations

from devtools.sim.workload import Load
from devtools.sim.world import World
from ixion.broker.broker import Broker
from ixion.log.reader import Isolation, read
from ixion.model.errors import ErrorCode
from ixion.model.topic_partition import TopicPartition
from ixion.records.batches import iter_batches

Entry = tuple[int, bytes]  # leader epoch, value


class Broken(Exception):  # noqa: N818 - it names what was found
    """An invariant does not hold."""

    def __init__(self, invariant: str, text: str) -> None:
        super().__init__(f"{invariant}: {text}")
        self.invariant = invariant


class Watcher:
    """Looks at the cluster from time to time, and remembers what consumers could have read."""

    def __init__(self, world: World, keys: list[TopicPartition]) -> None:
        self._world = world
        self._keys = keys
        self._seen: dict[TopicPartition, dict[int, Entry]] = {key: {} for key in keys}
        self._epochs: dict[TopicPartition, int] = {}
        self._controller_epoch = 0

    def look(self) -> None:
        world = self._world
        for key in self._keys:
            state = world.state(key)
            if state is None:
                continue
            if state.leader >= 0 and state.leader not in state.isr:
                raise Broken("LeaderInIsr", f"{key}: leader {state.leader} is not in {state.isr}")
            if not state.isr:
                raise Broken("LeaderInIsr", f"{key}: no replica is in sync")
            if state.leader_epoch < self._epochs.get(key, 0):
                raise Broken("MonotonicEpochs", f"{key}: leader epoch {state.leader_epoch} < {self._epochs[key]}")
            self._epochs[key] = state.leader_epoch
            self._look_at_reads(key)

    def _look_at_reads(self, key: TopicPartition) -> None:
        """ConsistentRead: what a leader showed to consumers is shown by every later leader, at the same offset."""
        seen = self._seen[key]
        for number, broker in self._world.running():
            partition = broker.parts.replicas.partitions.get(key)
            if partition is None or not partition.leads:
                continue
            high = partition.log.high_watermark
            for offset, entry in entries(broker, key, len(seen) and max(seen) + 1, high).items():
                seen.setdefault(offset, entry)
            if seen and partition.leader_epoch == self._epochs.get(key):
                sample = max(min(max(seen), high - 1), 0)
                found = entries(broker, key, max(sample - 20, 0), sample + 1)
                for offset, entry in found.items():
                    if offset in seen and seen[offset] != entry:
                        raise Broken("ConsistentRead", f"{key} at {offset}: was {seen[offset]}, b{number} has {entry}")

    def final(self, load: Load) -> None:
        """When all is healthy again: every replica has everything that was acknowledged, once and in order."""
        for key in self._keys:
            logs = {number: entries(broker, key) for number, broker in self._world.running()}
            self._same(key, logs)
            log = next(iter(logs.values()))
            for offset, entry in self._seen[key].items():
                if log.get(offset) != entry:
                    raise Broken(
                        "ConsistentRead", f"{key} at {offset}: {entry} was read, the log has {log.get(offset)}"
                    )
            self._complete(key, log, load)

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
                    raise Broken("Sequence", f"{key}: {value!r} was refused: the leader lacks what came before it")
            last = -1
            for value in sent.values:
                found = places.get(value, [])
                if len(found) > 1:
                    raise Broken("OnceOnly", f"{key}: {value!r} is at {found}")
                if value in sent.acknowledged:
                    if not found:
                        at = sent.acknowledged[value]
                        raise Broken("NoAcknowledgedLoss", f"{key}: {value!r}, acknowledged at {at}, is not there")
                    if found[0] != sent.acknowledged[value]:
                        at = sent.acknowledged[value]
                        raise Broken("MonotonicOffsets", f"{key}: {value!r}, acknowledged at {at}, is at {found[0]}")
                if found:
                    if found[0] < last:
                        raise Broken("Order", f"{key}: {value!r} of producer {number} is at {found[0]}, after {last}")
                    last = found[0]


def entries(broker: Broker, key: TopicPartition, start: int = 0, below: int = 1 << 60) -> dict[int, Entry]:
    """By offset, what a replica has."""
    partition = broker.parts.replicas.partitions.get(key)
    found: dict[int, Entry] = {}
    if partition is None:
        return found
    log = partition.log
    offset = max(start, log.log_start)
    while offset < min(below, log.end_offset):
        before = offset
        for view in iter_batches(read(log, offset, 1 << 20, Isolation.LOG_END).records):
            for each in view:
                if start <= each.offset < below:
                    found[int(each.offset)] = (int(view.leader_epoch), bytes(each.value or b""))
            offset = int(view.last_offset) + 1
        if offset == before:
            break
    return found


def behind(world: World, keys: list[TopicPartition]) -> list[str]:
    """What is not healthy: partitions without a leader, or with replicas that are not in sync."""
    if not world.all_know_all():
        return ["not every broker knows the others"]
    wrong: list[str] = []
    for key in keys:
        state = world.state(key)
        if state is None or state.leader < 0 or set(state.isr) != set(world.slots):
            wrong.append(f"{key}: {state}")
            continue
        ends = {
            number: partition.log.end_offset
            for number, broker in world.running()
            if (partition := broker.parts.replicas.partitions.get(key)) is not None
        }
        if len(set(ends.values())) != 1 or len(ends) != len(world.slots):
            wrong.append(f"{key}: ends {ends}")
    return wrong
