"""A random life of a compacted log with transactions, beside a plain list that knows what readers must find.

Steps: batches with and without a transaction, commits and aborts (with and without a raised epoch), tombstones, rolls,
a high watermark and a barrier of a fixed delay that lag behind, compaction, time that passes, retention, DeleteRecords,
truncation of what is not committed, expired producers, a move to another directory, a follower that copies, compacts by
itself and becomes the leader, a clean restart, and a kill after which the snapshots of the producers are gone.

After each step:

- a reader at read_committed gets only records of the list that it may see, and for every key the last of them, unless
  that is a tombstone whose time is over;
- a record is missing only if a compaction could see that it is aborted, replaced, or an expired tombstone;
- the last stable offset is that of the list.

After a restart the producers have the epochs and sequences that they had.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree

from ixion.broker.log.config import LogConfig
from ixion.broker.log.log import Log
from ixion.broker.log.mover import _append, _follow_start, _inherit
from ixion.broker.log.prepare import Origin
from ixion.broker.log.reader import read
from ixion.broker.log.retention import delete_doomed, retain
from ixion.broker.log.view import Bound
from ixion.language.records.compression import Codec
from tests.log.compacted_model import FAR, Entry, Producer, Txn, read_all
from tests.log.support import Box, batch, marker

RETENTION_MS = 1_000  # of tombstones and markers
EXPIRATION_MS = 120_000  # of producers; more than `snapshot_trailer.SLACK_MS`

# Compacts a log from a checkpoint on: (log, checkpoint, now, keys that fit the map) -> the next checkpoint.
Clean = Callable[[Log, int, int, int], int]


class Life:
    def __init__(self, seed: int, clean: Clean) -> None:
        self.random = random.Random(seed)
        self.root = Path(tempfile.mkdtemp())
        draw = self.random
        self.delayed = draw.random() < 0.3
        self.box = Box(
            self.root,
            LogConfig(
                segment_bytes=draw.choice([400, 900, 3000]),
                index_interval_bytes=draw.choice([0, 150, 4096]),
                cleanup_policy=frozenset(draw.choice([{"compact"}, {"compact"}, {"compact", "delete"}])),
                delete_retention_ms=RETENTION_MS,
                retention_bytes=draw.choice([-1, 2000]),
                retention_ms=-1,
                producer_id_expiration_ms=EXPIRATION_MS,
                file_delete_delay_ms=0,
                delivery_delay_ms=1000 if self.delayed else 0,
            ),
        )
        self.log = self.box.open()
        self.clean_log = clean
        self.list: list[Entry] = []
        self.txns: list[Txn] = []
        self.producers = [Producer(number) for number in range(1, 4)]
        self.next_producer = 4
        self.visible = 0 if self.delayed else FAR
        self.boundaries: list[int] = [0]  # offsets at which a batch begins, or the log ends
        self.checkpoint = -1
        self.expired: set[int] = set()
        self.directories = 1
        self.follower: tuple[Box, Log, int] | None = None  # its log, and the checkpoint of its compactions
        self.cleaned_to = 0  # no compaction has seen anything from here on

    # The model.

    @property
    def high_watermark(self) -> int:
        return self.log.high_watermark

    def stable(self) -> set[int]:
        """The last stable offset: with transactions counted from their first record, or from the first that is left."""
        start, high = self.log.log_start, self.high_watermark
        undecided = [txn for txn in self.txns if txn.marker < 0 or txn.marker >= high]
        left = [first for txn in undecided for first, last in txn.batches if last >= start]
        return {max(min([high, *(txn.batches[0][0] for txn in undecided)]), start), max(min([high, *left]), start)}

    def shown(self) -> int:
        """The end of what a reader at read_committed may see."""
        return min(self.log.last_stable_offset, self.visible)

    def seen(self) -> int:
        """The end of what it does see: a batch is shown as a whole."""
        return max(offset for offset in self.boundaries if offset <= self.shown())

    # Steps.

    def live(self, steps: int) -> None:
        draw = self.random
        kinds = [
            (self.write, 4),
            (self.write_in_transaction, 8),
            (self.end_transaction, 5),
            (self.commit_to_all, 4),
            (self.roll, 3),
            (self.clean, 5),
            (self.pass_time, 2),
            (self.show_more, 2 if self.delayed else 0),
            (self.delete_records, 0.5),
            (self.retain, 1 if self.box.config.delete else 0),
            (self.truncate, 0.7),
            (self.move, 0.5),
            (self.replicate, 1),
            (self.clean_follower, 1),
            (self.fail_over, 0.7),
            (self.restart, 1),
            (self.expire, 0.3),
        ]
        try:
            for number in range(steps):
                step = draw.choices([step for step, _ in kinds], [weight for _, weight in kinds])[0]
                step()
                self.check(f"step {number}, {step.__name__}")
        finally:
            self.log.abandon()
            if self.follower is not None:
                self.follower[1].abandon()
            rmtree(self.root)

    def pairs(self) -> list[tuple[bytes, bytes | None]]:
        draw = self.random
        end = self.log.end_offset
        return [
            (b"k%d" % draw.randrange(5), None if draw.random() < 0.25 else b"v%d" % (end + number))
            for number in range(draw.randint(1, 3))
        ]

    def append(self, producer: Producer | None, transactional: bool) -> None:
        pairs = self.pairs()
        named = None if producer is None else (producer.number, producer.epoch, producer.sequence)
        data = batch(
            *[value for _, value in pairs],
            keys=[key for key, _ in pairs],
            producer=named,
            transactional=transactional,
            codec=self.random.choice([Codec.NONE, Codec.NONE, Codec.GZIP]),
            timestamp=self.box.clock.now_ms,
        )
        first = self.log.append_as_leader(data, 0).first_offset
        txn = None
        if producer is not None:
            producer.sequence += len(pairs)
            if transactional:
                if producer.txn is None:
                    producer.txn = Txn(producer.number)
                    self.txns.append(producer.txn)
                txn = producer.txn
                txn.batches.append((first, first + len(pairs) - 1))
        self.list += [Entry(first + number, key, value, txn) for number, (key, value) in enumerate(pairs)]
        self.boundaries.append(self.log.end_offset)

    def write(self) -> None:
        idle = [producer for producer in self.producers if producer.txn is None]
        self.append(self.random.choice([None, *idle]), False)

    def write_in_transaction(self) -> None:
        self.append(self.random.choice(self.producers), True)

    def end_transaction(self) -> None:
        draw = self.random
        open_ones = [producer for producer in self.producers if producer.txn is not None]
        if not open_ones:
            return
        producer = draw.choice(open_ones)
        commit = draw.random() < 0.5
        raised = draw.random() < 0.3
        if raised:
            producer.epoch += 1
            producer.sequence = 0
        origin = Origin.RAISED_MARKER if raised else Origin.COORDINATOR
        data = marker(producer.number, producer.epoch, commit=commit, timestamp=self.box.clock.now_ms)
        at = self.log.append_as_leader(data, 0, origin).first_offset
        assert producer.txn is not None
        producer.txn.marker, producer.txn.aborted = at, not commit
        producer.txn = None
        self.boundaries.append(self.log.end_offset)

    def commit_to_all(self) -> None:
        """The followers have copied something: the high watermark moves."""
        self.copy_some()
        end = self.log.end_offset if self.follower is None else self.follower[1].end_offset
        ahead = [offset for offset in self.boundaries if self.high_watermark < offset <= end]
        if ahead:
            self.log.raise_high_watermark(self.random.choice([ahead[-1], self.random.choice(ahead)]))

    def roll(self) -> None:
        self.log.roll()

    def clean(self) -> None:
        log, now_ms = self.log, self.box.clock.now_ms
        if self.random.random() < 0.6:
            log.roll()
        self.note_cleaned(min(self.shown(), log.segments.active.base_offset))
        self.checkpoint = self.clean_log(log, self.checkpoint, now_ms, self.random.choice([3, 1000, 1000]))
        delete_doomed(log, now_ms)

    def note_cleaned(self, end: int) -> None:
        self.cleaned_to = max(self.cleaned_to, end)
        for entry in self.list:
            if entry.offset < self.cleaned_to and entry.value is None:
                entry.dead_ms = min(entry.dead_ms, self.box.clock.now_ms + RETENTION_MS)

    def pass_time(self) -> None:
        self.box.clock.now_ms += self.random.choice([1, 500, 1001])

    def show_more(self) -> None:
        if self.visible < self.log.end_offset:
            self.visible = self.random.randint(self.visible, self.log.end_offset)
            self.log.visible_end = self.visible

    def delete_records(self) -> None:
        high = min(self.high_watermark, self.visible)
        if self.log.log_start < high:
            self.log.raise_log_start(self.random.randint(self.log.log_start, high))

    def retain(self) -> None:
        start = self.log.log_start
        retain(self.log, self.box.clock.now_ms)
        delete_doomed(self.log, self.box.clock.now_ms)
        assert self.log.log_start <= max(start, min(self.high_watermark, self.visible))

    def truncate(self) -> None:
        """A follower drops what its new leader does not have."""
        least = max(self.high_watermark, self.cleaned_to, self.log.log_start)
        possible = [offset for offset in self.boundaries if least <= offset < self.log.end_offset]
        if not possible or self.delayed:
            return
        end = self.random.choice(possible)
        self.log.truncate_to(end)
        assert self.log.end_offset == end
        self.checkpoint = min(self.checkpoint, end)
        if self.follower is not None and self.follower[1].end_offset > end:
            box, log, checkpoint = self.follower
            log.truncate_to(end)
            self.follower = box, log, min(checkpoint, end)
        self.forget_from(end)

    def forget_from(self, end: int) -> None:
        self.list = [entry for entry in self.list if entry.offset < end]
        self.boundaries = [offset for offset in self.boundaries if offset <= end]
        for txn in self.txns:
            txn.batches = [each for each in txn.batches if each[0] < end]
            if txn.marker >= end:
                txn.marker, txn.aborted = -1, False
        self.txns = [txn for txn in self.txns if txn.batches]
        self.replace_producers()

    def move(self) -> None:
        """To another directory, as `log.mover` does: the copy begins with the batches, then gets the other state."""
        log = self.log
        box, copy = self.begin_copy()
        self.copy_to(copy, log.end_offset)
        with log.lock:
            _inherit(copy, log)
        if self.random.random() < 0.5:
            copy.flush()
        log.abandon()
        self.box, self.log, self.checkpoint = box, copy, -1

    def begin_copy(self) -> tuple[Box, Log]:
        self.directories += 1
        box = Box(self.root / f"directory-{self.directories}", self.box.config, clock=self.box.clock)
        copy = box.open()
        copy.truncate_fully(self.log.log_start)
        return box, copy

    def copy_to(self, copy: Log, end: int) -> None:
        if copy.end_offset < self.log.log_start:
            copy.truncate_fully(self.log.log_start)
        while copy.end_offset < end:
            _append(copy, read(self.log, copy.end_offset, self.random.choice([1, 300, 5000]), Bound.END).records)
        _follow_start(copy, self.log.log_start)

    def replicate(self) -> None:
        if self.follower is None and not self.delayed:
            self.follower = (*self.begin_copy(), -1)
            self.copy_to(self.follower[1], self.log.end_offset)
        self.copy_some()

    def copy_some(self) -> None:
        if self.follower is not None:
            _, log, _ = self.follower
            self.copy_to(log, self.random.choice([self.log.end_offset, *self.boundaries[-4:]]))
            log.raise_high_watermark(min(self.high_watermark, log.end_offset))

    def clean_follower(self) -> None:
        if self.follower is None:
            return
        box, log, checkpoint = self.follower
        end = min(log.last_stable_offset, log.segments.active.base_offset)
        self.note_cleaned(end)
        checkpoint = self.clean_log(log, checkpoint, box.clock.now_ms, self.random.choice([3, 1000]))
        delete_doomed(log, box.clock.now_ms)
        self.follower = box, log, checkpoint

    def fail_over(self) -> None:
        """The follower becomes the leader. It may not know yet how far the last one had committed."""
        if self.follower is None:
            return
        box, log, checkpoint = self.follower
        old = self.log
        decided = [txn.marker + 1 for txn in self.txns if txn.batches[0][0] < self.cleaned_to]
        least = max(self.cleaned_to, old.log_start, *decided)
        known = [offset for offset in self.boundaries if least <= offset <= min(old.high_watermark, log.end_offset)]
        if not known or log.log_start != old.log_start:
            return
        log.raise_high_watermark(self.random.choice(known))
        end = log.end_offset
        old.truncate_to(end)
        self.follower = self.box, old, min(self.checkpoint, end)
        self.box, self.log, self.checkpoint = box, log, checkpoint
        self.forget_from(end)
        self.abort_found_transactions()

    def replace_producers(self) -> None:
        """The producers begin with what the log knows of them."""
        undecided = {txn.producer: txn for txn in self.txns if txn.marker < 0}
        for producer in self.producers:
            entry = self.log.producers.producers.get(producer.number)
            producer.txn = undecided.get(producer.number)
            if entry is not None:
                producer.epoch, producer.sequence = entry.epoch, entry.last_sequence + 1
        self.drop_lost_transactions()

    def restart(self) -> None:
        draw = self.random
        log = self.log
        known = {
            entry.producer_id: (entry.epoch, entry.last_sequence, entry.last_offset)
            for entry in log.producers.producers.values()
            if self.box.clock.now_ms - entry.used_ms < EXPIRATION_MS and entry.producer_id not in self.expired
        }
        decided = [txn.marker + 1 for txn in self.txns if txn.batches[0][0] < self.cleaned_to]
        least = max(self.cleaned_to, log.log_start, *decided)
        lower = [offset for offset in self.boundaries if least <= offset <= log.high_watermark]
        high = draw.choice([log.high_watermark, *lower])
        start, recovery_point = log.log_start, log.recovery_point
        kept = draw.random() < 0.4
        if kept:
            log.close()
            recovery_point = log.recovery_point
        else:
            log.abandon()
            for path in self.box.folder.glob("*.snapshot"):
                path.unlink()
            recovery_point = draw.choice([0, recovery_point])
        self.log = self.box.open(clean=kept, recovery_point=recovery_point, log_start=start, high_watermark=high)
        self.log.visible_end = self.visible
        for number, (epoch, sequence, offset) in known.items():
            entry = self.log.producers.producers.get(number)
            if offset >= self.log.log_start or kept:
                assert entry is not None, f"producer {number} is forgotten"
                assert (entry.epoch, entry.last_sequence) == (epoch, sequence), f"producer {number} has changed"
        self.drop_lost_transactions()
        self.abort_found_transactions()

    def abort_found_transactions(self) -> None:
        """A truncation forgets a transaction whose only batches left lie below the log start, and a recovery that reads
        these finds it again. Its coordinator ends it, as every transaction."""
        known = {txn.producer for txn in self.txns if txn.marker < 0}
        for entry in list(self.log.producers.producers.values()):
            if entry.txn_first_offset >= 0 and entry.producer_id not in known:
                first = entry.txn_first_offset
                assert first < self.log.log_start, f"producer {entry.producer_id} has begun a transaction at {first}"
                txn = Txn(entry.producer_id, [(first, first)], aborted=True)
                data = marker(entry.producer_id, entry.epoch, commit=False, timestamp=self.box.clock.now_ms)
                txn.marker = self.log.append_as_leader(data, 0, Origin.COORDINATOR).first_offset
                self.txns.append(txn)
                self.boundaries.append(self.log.end_offset)

    def drop_lost_transactions(self) -> None:
        """What lies below the log start opens no transaction any more; a new producer goes on."""
        for place, producer in enumerate(self.producers):
            entry = self.log.producers.producers.get(producer.number)
            if (
                entry is None
                or (producer.txn is not None and entry.txn_first_offset < 0)
                or (entry.epoch, entry.last_sequence + 1) != (producer.epoch, producer.sequence)
            ):
                if producer.txn is not None:
                    assert producer.txn.batches[-1][1] < self.log.log_start
                    self.txns.remove(producer.txn)
                self.producers[place] = Producer(self.next_producer)
                self.next_producer += 1

    def expire(self) -> None:
        self.box.clock.now_ms += EXPIRATION_MS
        self.log.expire_producers(self.box.clock.now_ms)
        # A truncation that begins with an older snapshot may find one of them again, and its batch may be gone by then.
        self.expired |= {each.number for each in self.producers} - self.log.producers.producers.keys()
        self.drop_lost_transactions()

    # Checks.

    def check(self, when: str) -> None:
        log = self.log
        assert log.end_offset == self.boundaries[-1], when
        assert log.last_stable_offset in self.stable(), f"{when}: {log.last_stable_offset} not in {self.stable()}"
        entries = {entry.offset: entry for entry in self.list if entry.offset >= log.log_start}
        whole = read_all(log, Bound.END, self.random, when)
        visible = read_all(log, Bound.VISIBLE, self.random, when)
        committed = read_all(log, Bound.VISIBLE_STABLE, self.random, when)
        for found in (whole, visible, committed):
            for offset, pair in found.items():
                assert offset in entries, f"{when}: offset {offset} is not in the list"
                assert pair == (entries[offset].key, entries[offset].value), f"{when}: offset {offset} is {pair}"
        for offset in visible:
            assert offset < min(self.high_watermark, self.visible), f"{when}: offset {offset} is shown too early"
        latest: dict[bytes, Entry] = {}
        cleaned: dict[bytes, Entry] = {}
        for entry in entries.values():
            txn = entry.txn
            if txn is not None and (txn.aborted or txn.marker < 0):
                assert entry.offset not in committed, f"{when}: offset {entry.offset} was not committed"
                continue
            if entry.offset < self.seen():
                latest[entry.key] = entry
            if entry.offset < self.cleaned_to:
                cleaned[entry.key] = entry
        for offset in committed:
            assert offset < self.shown(), f"{when}: offset {offset} is shown too early"
        now_ms = self.box.clock.now_ms
        for key, entry in latest.items():
            if entry.offset in committed:
                continue
            expired = entry.value is None and now_ms >= entry.dead_ms
            assert expired, f"{when}: {key!r} at {entry.offset} is gone"
            older = [offset for offset, (name, _) in committed.items() if name == key]
            assert not older, f"{when}: {key!r} at {older} is back, the tombstone at {entry.offset} is gone"
        for entry in entries.values():
            if entry.offset in whole:
                if entry.offset < self.seen() and (entry.txn is None or not entry.txn.aborted):
                    assert entry.offset in committed, f"{when}: offset {entry.offset} is hidden"
                continue
            assert entry.offset < self.cleaned_to, f"{when}: offset {entry.offset} is gone before its compaction"
            if entry.txn is not None and entry.txn.aborted:
                continue
            last = cleaned[entry.key]
            assert last.offset > entry.offset or (entry.value is None and now_ms >= entry.dead_ms), (
                f"{when}: offset {entry.offset} is gone without a reason"
            )
