"""Idempotence and transactions, through a log: what is taken, what is refused, what a restart remembers."""

from __future__ import annotations

import pytest

from ixion.broker.log.config import DAY_MS, LogConfig
from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.log import Log
from ixion.broker.log.prepare import Origin
from ixion.broker.log.producer_entry import BatchTrace, ProducerEntry
from ixion.broker.log.producer_state import MOST_OFFERED, MOST_PRODUCERS, ProducerState
from ixion.broker.log.reader import read
from ixion.broker.log.snapshot_file import decode_snapshot, encode_snapshot
from ixion.broker.log.txn_index import AbortedTxn
from ixion.broker.log.view import Bound
from ixion.language.model.errors import ErrorCode, KafkaError
from tests.log.support import NOW, Box, batch, marker, open_transaction, stored

LAST = (1 << 31) - 1


def send(
    log: Log,
    sequence: int,
    *,
    epoch: int = 0,
    producer: int = 9,
    count: int = 1,
    transactional: bool = False,
    timestamp: int = NOW,
) -> int:
    identity = (producer, epoch, sequence)
    data = batch(*[b"v"] * count, producer=identity, transactional=transactional, timestamp=timestamp)
    return log.append_as_leader(data, 0).first_offset


def end(log: Log, *, commit: bool, epoch: int = 0, producer: int = 9, coordinator_epoch: int = 0) -> int:
    data = marker(producer, epoch, commit=commit, coordinator_epoch=coordinator_epoch)
    return log.append_as_leader(data, 0, Origin.COORDINATOR).first_offset


def refused(log: Log, code: ErrorCode, sequence: int, **kw: int) -> None:
    before = (log.end_offset, log.size, log.producers.producers.get(kw.get("producer", 9)))
    with pytest.raises(KafkaError) as caught:
        send(log, sequence, **kw)  # type: ignore[arg-type]
    assert caught.value.code == code
    assert (log.end_offset, log.size, log.producers.producers.get(kw.get("producer", 9))) == before


def test_sequences_must_follow(box: Box) -> None:
    log = box.open()
    assert send(log, 0, count=3) == 0
    assert send(log, 3) == 3
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 5)
    assert send(log, 4) == 4


def test_how_a_producer_has_tried_to_begin_is_remembered_until_it_has(box: Box) -> None:
    log = box.open()
    offered = log.producers.lowest_offered
    assert [offered(9, 0, 5), offered(9, 0, 3), offered(9, 0, 4)] == [5, 3, 3]
    assert [offered(9, 1, 7), offered(9, 0, 2), offered(9, 1, 8)] == [7, 7, 7], "of its latest epoch"
    assert offered(8, 0, 1) == 1
    send(log, 0, epoch=1)
    assert (offered(9, 1, 9), offered(8, 0, 2)) == (9, 1)
    end(log, commit=True, producer=8)
    assert offered(8, 0, 2) == 2, "a marker is something of it, too"
    log.truncate_fully(0)
    assert offered(8, 0, 3) == 3


def test_of_how_many_producers_it_is_remembered_is_bounded() -> None:
    state = ProducerState()
    for producer_id in range(MOST_OFFERED + 1):
        state.lowest_offered(producer_id, 0, 1)
    assert [state.lowest_offered(each, 0, 2) for each in (1, MOST_OFFERED, 0)] == [1, 1, 2], "the oldest goes first"


def test_a_repeated_batch_is_answered_with_its_first_offset(box: Box) -> None:
    log = box.open()
    for number in range(7):
        send(log, number * 2, count=2)
    for number in (2, 3, 4, 5, 6):
        info = log.append_as_leader(batch(b"v", b"v", producer=(9, 0, number * 2)), 0)
        assert info.duplicate
        assert (info.first_offset, info.last_offset) == (number * 2, number * 2 + 1)
    assert log.end_offset == 14
    # The sixth batch back is not remembered, and its sequence is not the next one.
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 2, count=2)
    # The same first sequence with another length is no repetition either.
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 12, count=1)


def test_the_sequence_wraps_after_the_largest_number(box: Box) -> None:
    log = box.open()
    assert send(log, LAST - 1, count=2) == 0  # an unknown producer may begin anywhere
    assert send(log, 0) == 2
    assert send(log, 1) == 3
    info = log.append_as_leader(batch(b"v", b"v", producer=(9, 0, LAST - 1)), 0)
    assert (info.duplicate, info.first_offset) == (True, 0)


def test_a_batch_may_wrap_in_its_middle(box: Box) -> None:
    log = box.open()
    send(log, LAST - 1, count=4)
    assert send(log, 2) == 4
    assert log.append_as_leader(batch(*[b"v"] * 4, producer=(9, 0, LAST - 1)), 0).duplicate


def test_a_new_epoch_begins_with_zero_and_fences_the_old_one(box: Box) -> None:
    log = box.open()
    send(log, 0, epoch=3)
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 1, epoch=4)
    send(log, 0, epoch=4)
    refused(log, ErrorCode.INVALID_PRODUCER_EPOCH, 1, epoch=3)
    refused(log, ErrorCode.INVALID_PRODUCER_EPOCH, 0, epoch=3)
    send(log, 1, epoch=4)


def test_producers_do_not_disturb_each_other(box: Box) -> None:
    log = box.open()
    send(log, 0, producer=1)
    send(log, 0, producer=2)
    send(log, 1, producer=1)
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 2, producer=2)


def test_a_silent_producer_is_forgotten_unless_its_transaction_is_open(box: Box) -> None:
    log = box.open()
    send(log, 0, producer=1)
    send(log, 0, producer=2, transactional=True)
    assert log.expire_producers(NOW + DAY_MS - 1) == 0
    assert log.expire_producers(NOW + DAY_MS) == 1
    assert send(log, 77, producer=1) == 2
    assert open_transaction(log.producers) == 1


@pytest.mark.parametrize("old_ms", [0, DAY_MS, 700 * DAY_MS])
@pytest.mark.parametrize("stop", ["none", "clean", "crash"])
def test_a_producer_of_old_records_is_active_as_long_as_it_writes(box: Box, old_ms: int, stop: str) -> None:
    """Its timestamps say nothing about when it wrote: a batch that it repeats must not be appended twice."""
    log = box.open()
    send(log, 0, timestamp=NOW - old_ms)
    box.clock.now_ms += DAY_MS - 1
    assert log.expire_producers(box.clock.now_ms) == 0
    send(log, 1, timestamp=NOW - old_ms)
    if stop == "clean":
        log.close()
    elif stop == "crash":
        log.abandon()
    box.clock.now_ms += DAY_MS - 1
    if stop != "none":
        log = box.open(clean=stop == "clean")
    assert log.expire_producers(box.clock.now_ms) == 0
    assert log.append_as_leader(batch(b"v", producer=(9, 0, 1)), 0).duplicate
    if stop != "crash":
        assert log.expire_producers(box.clock.now_ms + 1) == 1


def test_an_open_transaction_holds_the_last_stable_offset(box: Box) -> None:
    log = box.open()
    send(log, 0, producer=1)
    send(log, 0, producer=2, transactional=True)
    send(log, 0, producer=3, transactional=True)
    send(log, 1, producer=1)
    log.raise_high_watermark(4)
    assert log.last_stable_offset == 1
    end(log, commit=False, producer=3)
    log.raise_high_watermark(5)
    assert log.last_stable_offset == 1
    end(log, commit=True, producer=2)
    assert log.last_stable_offset == 1  # the marker is not below the high watermark yet
    log.raise_high_watermark(6)
    assert log.last_stable_offset == 6
    aborted = read(log, 0, 10_000, Bound.VISIBLE_STABLE).aborted
    assert aborted is not None
    assert [txn.fields() for txn in aborted] == [(3, 2, 4, 1)]
    assert read(log, 5, 10_000, Bound.VISIBLE_STABLE).aborted == []
    assert read(log, 0, 10_000, Bound.END).aborted is None


def test_a_reader_at_read_committed_stops_at_the_last_stable_offset(box: Box) -> None:
    log = box.open()
    send(log, 0, producer=1)
    send(log, 0, producer=2, transactional=True)
    send(log, 1, producer=1)
    log.raise_high_watermark(3)
    assert [offset for offset, _ in stored(log, 0, Bound.VISIBLE_STABLE)] == [0]
    assert [offset for offset, _ in stored(log, 0, Bound.VISIBLE)] == [0, 1, 2]
    assert read(log, 1, 100, Bound.VISIBLE_STABLE).records == b""


def test_a_follower_knows_the_first_open_transaction_of_a_fetch_that_has_several(box: Box) -> None:
    """Producer 1 starts, aborts and starts again; producer 2 has started in between."""
    log = box.open()
    send(log, 0, producer=1, transactional=True)
    end(log, commit=False, producer=1)
    send(log, 0, producer=2, transactional=True)
    send(log, 1, producer=1, transactional=True)
    follower = Box(box.path / "follower").open()
    follower.append_as_follower(bytes(read(log, 0, 10_000, Bound.END).records))
    for each in (log, follower):
        each.raise_high_watermark(4)
        assert each.last_stable_offset == 2
        assert [txn.fields() for txn in each.segments.active.txn_index.entries()] == [(1, 0, 1, 2)]
    assert [offset for offset, _ in stored(follower, 0, Bound.VISIBLE_STABLE)] == [0]


def test_a_follower_knows_the_aborted_transactions_of_a_fetch_whose_end_it_had_to_truncate(box: Box) -> None:
    leader, follower = box.open(), Box(box.path / "follower").open()
    send(leader, 0, producer=1, transactional=True)
    end(leader, commit=False, producer=1)
    common = leader.end_offset
    send(leader, 0, producer=3)
    send(leader, 0, producer=4)
    send(leader, 0, producer=1, epoch=1, transactional=True)
    follower.append_as_follower(bytes(read(leader, 0, 10_000, Bound.END).records))
    for each in (leader, follower):
        each.truncate_to(common)
    send(leader, 0, producer=2, transactional=True)
    end(leader, commit=False, producer=2)
    follower.append_as_follower(bytes(read(leader, common, 10_000, Bound.END).records))
    follower.raise_high_watermark(follower.end_offset)
    found: list[AbortedTxn] = []
    follower.segments.active.txn_index.collect(0, common + 1, found)
    assert [(txn.producer_id, txn.first_offset) for txn in found] == [(1, 0), (2, common)]


def test_a_write_outside_the_open_transaction_is_refused(box: Box) -> None:
    log = box.open()
    send(log, 0, transactional=True)
    refused(log, ErrorCode.INVALID_TXN_STATE, 1)
    send(log, 1, transactional=True)


def test_a_batch_of_an_aborted_transaction_has_no_duplicates(box: Box) -> None:
    """librdkafka takes the sequence numbers of a batch again whose answer was lost before it aborted: to acknowledge
    the new batch with the offset of the aborted one would lose it."""
    log = box.open()
    assert send(log, 0, count=3, transactional=True) == 0
    assert send(log, 0, count=3, transactional=True) == 0, "within the transaction it is a duplicate"
    end(log, commit=False)
    refused(log, ErrorCode.UNKNOWN_PRODUCER_ID, 0, count=3, transactional=True)
    refused(log, ErrorCode.UNKNOWN_PRODUCER_ID, 0, count=2, transactional=True)
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 4, transactional=True)
    assert send(log, 3, count=2, transactional=True) == 4, "a client that got the answer goes on"
    assert send(log, 3, count=2, transactional=True) == 4
    end(log, commit=True)
    assert send(log, 3, count=2, transactional=True) == 4, "committed: it was acknowledged"
    assert send(log, 0, epoch=1, transactional=True) == 7, "the next epoch begins at 0 again"


def test_a_restart_knows_which_batches_were_aborted_since_its_snapshot(box: Box) -> None:
    """A follower learns it in the same way, from the batches and markers that it copies."""
    log = box.open()
    send(log, 0, transactional=True)
    end(log, commit=False)
    log.abandon()
    again = box.open()
    refused(again, ErrorCode.UNKNOWN_PRODUCER_ID, 0, transactional=True)
    assert send(again, 1, transactional=True) == 2


def test_markers_are_fenced_by_producer_and_coordinator_epoch(box: Box) -> None:
    log = box.open()
    send(log, 0, epoch=2, transactional=True)
    with pytest.raises(KafkaError) as caught:
        end(log, commit=True, epoch=1)
    assert caught.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
    end(log, commit=True, epoch=2, coordinator_epoch=5)
    send(log, 1, epoch=2, transactional=True)
    with pytest.raises(KafkaError) as caught:
        end(log, commit=True, epoch=2, coordinator_epoch=4)
    assert caught.value.code == ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_a_marker_without_a_transaction_fences_and_changes_nothing_else(box: Box) -> None:
    log = box.open()
    end(log, commit=False, epoch=4)
    log.raise_high_watermark(1)
    assert log.last_stable_offset == 1
    assert log.segments.active.txn_index.entries() == []
    refused(log, ErrorCode.INVALID_PRODUCER_EPOCH, 0, epoch=3)


def test_a_marker_with_a_higher_epoch_starts_the_sequence_over(box: Box) -> None:
    log = box.open()
    send(log, 0, epoch=1, count=5, transactional=True)
    end(log, commit=True, epoch=2)
    assert send(log, 0, epoch=2, transactional=True) == 6


def test_a_client_may_not_write_a_marker(box: Box) -> None:
    log = box.open()
    with pytest.raises(KafkaError) as caught:
        log.append_as_leader(marker(9, 0, commit=True), 0)
    assert caught.value.code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("clean", [True, False])
def test_a_restart_remembers_producers_and_transactions(box: Box, clean: bool) -> None:
    box.config = LogConfig(segment_bytes=400)
    log = box.open()
    for number in range(10):
        send(log, number, producer=1)
        send(log, number, producer=2, transactional=True)
        if number == 6:
            end(log, commit=False, producer=2)
    assert len(log.segments) > 2
    first_unstable = open_transaction(log.producers)
    if clean:
        log.close()
    else:
        log.abandon()
    again = box.open(clean=clean)
    assert open_transaction(again.producers) == first_unstable == 16
    refused(again, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 11, producer=1)
    assert again.append_as_leader(batch(b"v", producer=(1, 0, 9)), 0).duplicate
    assert send(again, 10, producer=1) == 21
    aborted = [txn.fields() for segment in again.segments for txn in segment.txn_index.entries()]
    assert aborted == [(2, 1, 14, 15)]


def test_truncation_takes_the_producer_state_back(box: Box) -> None:
    box.config = LogConfig(segment_bytes=400)
    log = box.open()
    for number in range(10):
        send(log, number, producer=1)
        send(log, number, producer=2, transactional=True)
    log.truncate_to(7)
    assert log.end_offset == 7
    assert send(log, 4, producer=1) == 7
    assert send(log, 3, producer=2, transactional=True) == 8
    assert open_transaction(log.producers) == 1
    log.truncate_to(1)
    assert open_transaction(log.producers) == -1


def test_a_snapshot_round_trips_and_notices_every_flipped_bit() -> None:
    entry = ProducerEntry(9, 3)
    entry.add(3, BatchTrace(LAST, 1000, 4, NOW))
    entry.txn_first_offset = 17
    entry.coordinator_epoch = 2
    data = encode_snapshot([entry, ProducerEntry(10, 0)])
    assert len(data) == 2 + 4 + 4 + 2 * 46
    first, second = decode_snapshot("x", data)
    assert (first.last_sequence, first.last_offset, first.txn_first_offset, first.coordinator_epoch) == (
        LAST,
        1000,
        17,
        2,
    )
    assert (second.producer_id, second.epoch, second.batches) == (10, 0, [])
    for bit in range(len(data) * 8):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptFileError):
            decode_snapshot("x", bytes(flipped))
    for size in range(len(data)):
        with pytest.raises(CorruptFileError):
            decode_snapshot("x", data[:size])


def test_a_coordinator_writes_for_a_producer_without_its_sequence(box: Box) -> None:
    """Offsets in a transaction all carry sequence 0; old epochs are refused all the same."""
    log = box.open()
    for count in (2, 1, 2):
        data = batch(*[b"v"] * count, producer=(9, 3, 0), transactional=True)
        log.append_as_leader(data, 0, Origin.COORDINATOR)
    assert log.end_offset == 5
    with pytest.raises(KafkaError) as caught:
        log.append_as_leader(batch(b"v", producer=(9, 2, 0), transactional=True), 0, Origin.COORDINATOR)
    assert caught.value.code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_few_producers_are_remembered_however_many_ids_are_made_up() -> None:
    """The one that was silent longest goes, unless it has a transaction open."""
    state = ProducerState()
    for number in range(MOST_PRODUCERS):
        state.producers[number] = ProducerEntry(number)
    state.producers[0].txn_first_offset = 7
    state.apply([state.draft(1, True)], NOW)  # it has written again
    for number in range(MOST_PRODUCERS, MOST_PRODUCERS + 3):
        state.apply([state.draft(number, True)], NOW)
    assert len(state.producers) == MOST_PRODUCERS
    assert [number for number in range(6) if number in state.producers] == [0, 1, 5]
