"""Brokers that break one promise each, to see that the soak can fail and names the anomaly.

    python -m devtools.soak --broken markers --seconds 40

A fault replaces a method or a function of the broker, so it works on the interpreted sources only.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).parents[2] / "src"
Put = Callable[[Any, str, Any], None]  # setattr, or a test's that undoes it


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    what: str  # the broker does
    shows_as: frozenset[str]  # any of these is the right anomaly
    breaks: Callable[[Put], None]


def _open_records_are_shown(put: Put) -> None:
    from ixion.broker.log.log import Log

    put(Log, "last_stable_offset", property(lambda log: log.high_watermark))


def _aborted_are_not_listed(put: Put) -> None:
    from ixion.broker.log import reader

    put(reader, "aborted_within", lambda *_: [])


def _a_marker_is_left_out(put: Put) -> None:
    from dataclasses import replace

    from ixion.broker.coordinators.txn.local_markers import LocalMarkers
    from ixion.language.model.errors import ErrorCode

    write = LocalMarkers.write

    def leave_out(self: LocalMarkers, marker: Any, done: Any) -> None:
        left_out = sorted(marker.partitions)[-1:] if len(marker.partitions) > 2 else []
        kept = replace(marker, partitions=marker.partitions.difference(left_out))
        write(self, kept, lambda codes: done(codes | dict.fromkeys(left_out, ErrorCode.NONE)))

    put(LocalMarkers, "write", leave_out)


def _aborted_offsets_count(put: Put) -> None:
    from ixion.broker.coordinators.group.offsets import GroupOffsets

    end = GroupOffsets.end_transaction
    put(GroupOffsets, "end_transaction", lambda self, producer_id, _: end(self, producer_id, committed=True))


def _old_epochs_are_served(put: Put) -> None:
    from ixion.broker.coordinators.txn import coordinator
    from ixion.broker.log.producer_state import Draft

    put(Draft, "_check_epoch", lambda *_: None)
    put(Draft, "_check_sequence", lambda *_: None)
    for name in ("add_partitions", "verify_partitions", "end_transaction"):
        rule = getattr(coordinator, name)

        def lenient(transaction: Any, producer_id: int, _epoch: int, *rest: Any, rule: Any = rule) -> Any:
            return rule(transaction, producer_id, transaction.now.epoch, *rest)

        put(coordinator, name, lenient)


def _repetitions_are_appended(put: Put) -> None:
    from ixion.broker.log.producer_state import Draft, ProducerState

    put(ProducerState, "find_duplicate", lambda *_: None)
    put(Draft, "_check_sequence", lambda *_: None)


def _recovery_drops_a_batch(put: Put) -> None:
    from ixion.broker.log import log_loader
    from ixion.broker.log.recovery import Damage
    from ixion.broker.log.recovery import recover_segment as recover

    def cut_first(segment: Any, *rest: Any) -> Damage | None:
        if segment.size and "__" not in str(segment.path("log")):
            segment.cut(segment.size - 1)
        return recover(segment, *rest)

    put(log_loader, "recover_segment", cut_first)


def _acknowledged_is_not_written(put: Put) -> None:
    from ixion.broker.log.prepare import AppendInfo, Origin
    from ixion.broker.replica.partition import Partition
    from ixion.language.records.batch import BatchView

    append = Partition.append
    chance = random.Random(1)

    def forget_some(self: Partition, records: Any, acks: int, origin: Origin) -> AppendInfo:
        if origin == Origin.CLIENT and chance.random() < 0.01:
            end = self.log.end_offset
            return AppendInfo(end, end + BatchView(records, 0).last_offset_delta, self.log.log_start)
        return append(self, records, acks, origin)

    put(Partition, "append", forget_some)


def _group_offsets_are_forgotten(put: Put) -> None:
    from ixion.broker.coordinators.group import shards

    put(shards, "replay_batch", lambda *_: None)


def _open_transactions_stay_open(put: Put) -> None:
    from ixion.broker.coordinators.txn.expiration import Expiration

    put(Expiration, "abort_timed_out", lambda _: None)


def _leader_alone(put: Put) -> None:
    from ixion.broker.replica.partition import Partition

    def advance(self: Partition) -> bool:
        return self.leads and self.log.raise_high_watermark(self.log.end_offset)

    put(Partition, "advance_high_watermark", advance)


LOSS = frozenset({"lost-write", "unseen"})
TORN = frozenset({"torn-transaction"})

FAULTS = {
    "last-stable": Fault(
        what="shows records of open transactions",
        shows_as=frozenset({"aborted-read"}),
        breaks=_open_records_are_shown,
    ),
    "aborted-list": Fault(
        what="does not say which transactions were aborted",
        shows_as=frozenset({"aborted-read"}),
        breaks=_aborted_are_not_listed,
    ),
    "markers": Fault(
        what="leaves one partition of a transaction without its marker",
        shows_as=TORN | LOSS,
        breaks=_a_marker_is_left_out,
    ),
    "aborted-offsets": Fault(
        what="counts the group offsets of aborted transactions",
        shows_as=frozenset({"uncopied"}),
        breaks=_aborted_offsets_count,
    ),
    "fencing": Fault(
        what="serves producers whose epoch is over",
        shows_as=TORN | LOSS | {"aborted-read"},
        breaks=_old_epochs_are_served,
    ),
    "repetitions": Fault(
        what="appends what is sent again",
        shows_as=frozenset({"duplicate"}),
        breaks=_repetitions_are_appended,
    ),
    "recovery": Fault(
        what="loses the last batch of a log when it was killed",
        shows_as=LOSS | TORN | {"inconsistent-offsets"},
        breaks=_recovery_drops_a_batch,
    ),
    "acknowledged": Fault(
        what="acknowledges one batch in a hundred and does not write it",
        shows_as=LOSS | TORN | {"inconsistent-offsets"},
        breaks=_acknowledged_is_not_written,
    ),
    "offsets": Fault(
        what="forgets the offsets of groups with every restart",
        shows_as=frozenset({"duplicate"}),
        breaks=_group_offsets_are_forgotten,
    ),
    "timeouts": Fault(
        what="never ends a transaction that ran out of time",
        shows_as=LOSS | TORN,
        breaks=_open_transactions_stay_open,
    ),
}

# Of a cluster: one broker keeps these promises.
CLUSTER_FAULTS = {
    "leader-alone": Fault(
        what="answers acks=all as soon as the leader has the record",
        shows_as=LOSS | {"inconsistent-offsets", "sequence", "unequal replicas"},
        breaks=_leader_alone,
    ),
    "repetitions": FAULTS["repetitions"],
}


def main() -> None:
    name = sys.argv.pop(1)
    from ixion.cli.main import run

    (FAULTS | CLUSTER_FAULTS)[name].breaks(setattr)
    run()


if __name__ == "__main__":
    main()
