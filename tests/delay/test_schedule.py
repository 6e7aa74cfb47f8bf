"""Records that ask for a later delivery: accepted, held back, delivered once, never early."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ixion.broker.log.cleaner import Cleaner
from ixion.broker.log.config import LogConfig
from ixion.broker.log.retention import retain
from ixion.broker.log.view import Bound
from ixion.broker.schedules.schedules import CLOCK_CHECK_MS, UPKEEP_CHECKS
from ixion.language.model.errors import ErrorCode
from ixion.language.records.compression import Codec
from ixion.language.records.layout import HEADER_SIZE
from tests.delay.world import RECORD, DelayWorld, after, batches_of, cancel, records
from tests.log.support import NOW
from tests.replica.world import TOPIC_ID

HOUR = 3_600_000
DAY = 24 * HOUR


def test_a_record_is_delivered_when_it_is_due_and_not_a_millisecond_before(world: DelayWorld) -> None:
    result = world.send((b"now", []), after(b"later", 500), (b"too", []))
    assert (result.code, result.first_offset) == (ErrorCode.NONE, 0)
    assert world.read() == [(0, b"now"), (2, b"too")]
    world.advance(499)
    assert world.values() == [b"now", b"too"]
    world.advance(1)
    assert world.read() == [(0, b"now"), (2, b"too"), (3, b"later")]
    assert world.waiting == 0


def test_records_come_in_the_order_of_their_due_times_and_then_of_their_offsets(world: DelayWorld) -> None:
    world.send(after(b"3", 30), after(b"1", 10), after(b"2a", 20), after(b"2b", 20))
    world.advance(10)
    world.send(after(b"2c", 10), after(b"far", 2 * HOUR))
    world.advance(100)
    assert world.values() == [b"1", b"2a", b"2b", b"2c", b"3"]
    world.advance(2 * HOUR)
    assert world.values()[-1] == b"far"


def test_a_record_for_a_time_in_the_past_is_delivered_at_once(world: DelayWorld) -> None:
    world.send((b"past", [("x-deliver-at", b"1")]), (b"zero", [("x-deliver-after-ms", b"0")]))
    world.advance(1)
    assert world.values() == [b"past", b"zero"]


@pytest.mark.parametrize(
    "due",
    [
        b"%d" % (NOW + 1_500),
        (NOW + 1_500).to_bytes(8, "big"),
        b"2023-11-14T22:13:21.5Z",
        b"2023-11-14t23:13:21.4999+01:00",
    ],
)
def test_a_due_time_is_a_number_or_a_time_with_its_zone(world: DelayWorld, due: bytes) -> None:
    assert world.send((b"x", [("X-Deliver-At", due)])).code == ErrorCode.NONE
    world.advance(1_499)
    assert world.values() == []
    world.advance(1)
    assert world.values() == [b"x"]


def test_a_delivered_record_tells_its_due_time_and_handle_and_keeps_its_own_headers(world: DelayWorld) -> None:
    headers = [("a", b"1"), ("x-deliver-after-ms", b"500"), ("b", None), ("x-schedule-id", b"i"), ("a", b"2")]
    world.send((b"x", headers), timestamp=NOW - 7)
    world.advance(500)
    (view,) = [view for view in batches_of(world.target) if view.count]
    (record,) = view.records()
    assert record.headers == [
        ("a", b"1"),
        ("b", None),
        ("a", b"2"),
        ("x-scheduled-for", b"%d" % (NOW + 500)),
        ("x-schedule-offset", b"0"),
        ("x-schedule-created", b"%d" % (NOW - 7)),
    ]
    assert (record.key, record.timestamp) == (b"k", NOW + 500)


def test_a_record_that_is_forwarded_is_not_delayed_again_and_cannot_claim_to_be_delivered(world: DelayWorld) -> None:
    forged = [("x-scheduled-for", b"1"), ("x-schedule-offset", b"0"), ("x-schedule-created", b"1"), ("mine", b"")]
    assert world.send((b"x", forged)).code == ErrorCode.NONE
    (view,) = batches_of(world.target)
    (record,) = view.records()
    assert record.headers == [("mine", b"")]
    assert world.waiting == 0


@pytest.mark.parametrize("codec", list(Codec))
def test_a12_a_compressed_batch_of_both_kinds_keeps_its_offsets_and_each_is_delivered_once(
    world: DelayWorld, codec: Codec
) -> None:
    sent = [after(b"%d" % number, 100) if number % 3 == 0 else (b"%d" % number, []) for number in range(10)]
    assert world.send(*sent, codec=codec, producer=(7, 0, 0)).first_offset == 0
    assert world.send(*sent, codec=codec, producer=(7, 0, 0)).first_offset == 0, "a repetition"
    assert world.send((b"next", []), codec=codec, producer=(7, 0, 10)).first_offset == 10
    assert world.send((b"gap", []), codec=codec, producer=(7, 0, 99)).code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert world.send(after(b"gap", 1), producer=(7, 0, 99)).code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    world.advance(100)
    assert world.read() == [
        *((number, b"%d" % number) for number in range(10) if number % 3),
        (10, b"next"),
        *((11 + place, b"%d" % number) for place, number in enumerate(range(0, 10, 3))),
    ]
    first = next(iter(batches_of(world.target)))
    assert (first.codec, first.count, first.last_offset_delta, first.base_sequence) == (codec, 6, 9, 0)


def test_a20_a_batch_of_delayed_records_costs_the_partition_a_header(world: DelayWorld) -> None:
    world.send(*(after(b"x" * 1000, 10_000) for _ in range(50)), codec=Codec.ZSTD, producer=(7, 0, 0))
    assert world.target.size == HEADER_SIZE
    assert world.target.end_offset == 50
    assert not world.target.expire_producers(NOW + 1000), "its producer is known as for any batch"


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ([("x-deliver-after-ms", b"1"), ("x-deliver-at", b"1")], "exclude each other"),
        ([("x-deliver-after-ms", b"1"), ("x-deliver-after-ms", b"1")], "given twice"),
        ([("x-deliver-after-ms", b"-1")], "not a number of milliseconds"),
        ([("x-deliver-after-ms", b"soon")], "not a number of milliseconds"),
        ([("x-deliver-after-ms", b"")], "not a number of milliseconds"),
        ([("x-deliver-after-ms", None)], "not a number of milliseconds"),
        ([("x-deliver-after-ms", b"9" * 100_000)], "delivery.delay.max.ms"),
        ([("x-deliver-after-ms", (2**63 - 1).to_bytes(8, "big"))], "delivery.delay.max.ms"),
        ([("x-deliver-after-ms", b"\xff" * 8)], "not a number of milliseconds"),
        ([("x-deliver-at", b"9223372036854775807")], "delivery.delay.max.ms"),
        ([("x-deliver-at", b"\x80" + bytes(7))], "neither milliseconds nor a time"),
        ([("x-deliver-at", b"2024-01-01T00:00:00")], "neither milliseconds nor a time"),
        ([("x-deliver-at", b"9999-12-31T23:59:59Z")], "delivery.delay.max.ms"),
        ([("x-deliver-at", b"soon")], "neither milliseconds nor a time"),
        ([("x-deliver-at", b"tomorrow")], "is 'tomorrow', neither milliseconds nor a time"),
        ([("x-deliver-after-ms", b"ten days")], "is 'ten days', not a number of milliseconds"),
        ([("x-deliver-later", b"1")], "not a header of delayed delivery"),
        ([("x-schedule-i", b"1")], "not a header of delayed delivery"),
        ([("x-schedule-id", b"a")], "needs x-deliver-after-ms"),
        ([("x-deliver-after-ms", b"1"), ("x-schedule-id", b"")], "x-schedule-id is"),
        ([("x-deliver-after-ms", b"1"), ("x-schedule-id", b"i" * 256)], "x-schedule-id is"),
        ([("x-deliver-after-ms", b"1"), ("x-schedule-id", b"@7")], "x-schedule-id is"),
        ([("x-deliver-after-ms", b"1"), ("x-schedule-cancel", b"a")], "stands alone"),
        ([("x-schedule-cancel", b"@seven")], "neither an id nor"),
    ],
)
def test_a16_a_header_that_cannot_be_obeyed_refuses_its_record_and_nothing_is_delivered(
    world: DelayWorld,
    headers: list[tuple[str, bytes | None]],
    reason: str,
    codec: Codec,
    caplog: pytest.LogCaptureFixture,
) -> None:
    result = world.send((b"good", []), (b"bad", headers), after(b"later", 10), codec=codec)
    assert result.code == ErrorCode.INVALID_RECORD
    ((index, message),) = result.record_errors
    assert index == 1
    assert reason in message
    assert len(message) < 200
    (logged,) = caplog.messages
    assert logged.startswith("a produce to t-0 was refused: ")
    assert reason in logged
    world.advance(1_000)
    assert (world.values(), world.waiting, world.target.end_offset, world.sibling.end_offset) == ([], 0, 0, 0)
    assert world.schedules.figures.rejected == 1


def test_a16_a_crowd_of_refusals_does_not_fill_the_log(world: DelayWorld, caplog: pytest.LogCaptureFixture) -> None:
    bad = (b"bad", [("x-deliver-at", b"soon\nERROR ixion: forged")])
    for _ in range(100):
        world.send(bad)
    assert len(caplog.messages) == 10
    assert all("\n" not in line for line in caplog.messages)
    world.advance(1_000)
    world.send(bad)
    assert caplog.messages[10].endswith("(90 more refusals before this one are not logged)")


def test_a16_limits_are_enforced_when_a_record_is_accepted(world: DelayWorld) -> None:
    world.set(delivery_delay_max_ms=1_000, delivery_delay_pending_max=3)
    assert world.send(after(b"x", 1_001)).code == ErrorCode.INVALID_RECORD
    assert world.send(after(b"1", 1_000), after(b"2", 1_000)).code == ErrorCode.NONE
    result = world.send((b"now", []), after(b"3", 10), after(b"4", 10), after(b"5", 10))
    assert result.code == ErrorCode.INVALID_RECORD
    assert [index for index, _ in result.record_errors] == [2, 3]
    assert "delivery.delay.pending.max is 3" in result.record_errors[0][1]
    assert world.send(cancel(b"@0")).code == ErrorCode.NONE, "cancelling makes room"
    assert world.send(after(b"3", 10), after(b"4", 10)).code == ErrorCode.NONE
    world.advance(1_000)
    assert world.values() == [b"3", b"4", b"2"]
    world.set(delivery_delay_pending_bytes_max=300)
    assert world.send(after(b"x" * 300, 10)).code == ErrorCode.INVALID_RECORD
    assert world.send(after(b"small", 10)).code == ErrorCode.NONE
    largest = world.config.max_message_bytes
    assert world.send((b"y" * (largest - 200), [])).code == ErrorCode.NONE
    world.set(delivery_delay_pending_bytes_max=largest * 2)
    result = world.send(after(b"y" * (largest - 200), 10))
    assert result.code == ErrorCode.INVALID_RECORD, "with the broker's headers it might not fit any more"


def test_a_release_rate_spreads_what_is_due(world: DelayWorld) -> None:
    world.set(delivery_delay_release_rate_max=100)
    for _ in range(5):
        world.send(*(after(b"x", 1_000) for _ in range(100)))
    world.advance(1_000)
    counts = []
    for _ in range(5):
        counts.append(len(world.values()))
        for _ in range(20):
            world.advance(50)
    assert all(count <= 100 * (number + 1) for number, count in enumerate(counts))
    world.advance(1_000)
    assert len(world.values()) == 500


def test_a13_a_transaction_delays_its_records_from_its_commit_on(world: DelayWorld) -> None:
    world.send((b"now", []), after(b"commits", 100), producer=(7, 0, 0), transactional=True)
    world.send(after(b"aborts", 100), producer=(8, 0, 0), transactional=True)
    world.advance(200)
    assert world.values() == [b"now"], "due before its commit: it waits for that"
    assert world.values(Bound.VISIBLE_STABLE) == []
    world.mark(7, 0, commit=True)
    world.advance(1)
    world.mark(8, 0, commit=False)
    world.advance(1)
    assert world.values() == [b"now", b"commits"]
    assert world.values(Bound.VISIBLE_STABLE) == [b"now", b"commits"]
    assert world.schedules.figures.aborted == 1
    assert world.waiting == 0


def test_a15_a_waiting_record_is_cancelled_by_its_id_or_its_offset(world: DelayWorld) -> None:
    world.send(after(b"a", 100, id=b"a"), after(b"b", 100, id=b"b"), after(b"c", 100), after(b"d", 2 * HOUR))
    world.send(cancel(b"a"), cancel(b"@2"), cancel(b"stranger"), cancel(b"@4"), cancel(b"@99999999999"))
    world.send(cancel(b"@3"))
    assert world.waiting == 1
    world.advance(3 * HOUR)
    assert world.values() == [b"b"]
    assert world.schedules.figures.cancelled == 3
    assert world.target.end_offset == 11, "what cancels leaves a hole, and is never delivered"


def test_a15_a_record_replaces_the_one_with_its_id_be_it_due_sooner_or_later(world: DelayWorld) -> None:
    world.send(after(b"old", 100, id=b"a"), after(b"old", 100, id=b"b"))
    world.send(after(b"later", 200, id=b"a"), after(b"sooner", 50, id=b"b"))
    world.advance(150)
    assert world.values() == [b"sooner"]
    world.advance(50)
    assert world.values() == [b"sooner", b"later"]
    assert world.schedules.figures.superseded == 2
    world.send(after(b"anew", 10, id=b"a"))
    world.advance(10)
    assert world.values()[-1] == b"anew", "an id can be used again"


def test_a15_cancels_and_replacements_of_a_transaction_count_from_its_commit_on(world: DelayWorld) -> None:
    world.send(after(b"a", 100, id=b"a"), after(b"b", 100, id=b"b"), after(b"c", 100, id=b"c"))
    world.send(cancel(b"a"), after(b"b2", 100, id=b"b"), producer=(7, 0, 0), transactional=True)
    world.send(cancel(b"c"), producer=(8, 0, 0), transactional=True)
    world.mark(8, 0, commit=False)
    assert world.waiting == 5
    world.mark(7, 0, commit=True)
    world.advance(100)
    assert world.values() == [b"c", b"b2"]


def test_all_can_be_cancelled_at_once(world: DelayWorld) -> None:
    world.send(*(after(b"x", 100 + number, id=b"%d" % number) for number in range(50)))
    world.send(cancel(b"*"))
    assert world.waiting == 0
    world = world.restart()
    assert world.waiting == 0
    world.send(after(b"y", 100, id=b"1"))
    world.advance(1_000)
    assert world.values() == [b"y"]
    world.close()


def test_a10_after_a_long_time_down_all_is_delivered_in_the_order_of_due_times(world: DelayWorld) -> None:
    delays = [(number * 7919) % 1000 for number in range(1000)]
    world.send(*(after(b"%d" % delay, delay * DAY // 100) for delay in delays))
    world = world.restart(down_ms=10 * DAY)
    world.advance(1)
    assert world.values() == [b"%d" % delay for delay in sorted(delays)]
    assert world.waiting == 0
    world.close()


def test_a17_a_clock_that_is_set_neither_hurries_nor_stalls(world: DelayWorld) -> None:
    world.send(after(b"x", 2 * HOUR))
    world.clock_step_ms = -HOUR
    world.advance(2 * HOUR)
    assert world.values() == [], "by the clock it is an hour early"
    world.clock_step_ms = 0
    world.advance(1_000)
    assert world.values() == [b"x"]
    world.send(after(b"y", HOUR))
    world.clock_step_ms = HOUR
    world.advance(1_000)
    assert world.values() == [b"x", b"y"]
    assert world.schedules.figures.clock_jumps >= 2


def test_a18_retention_of_the_topic_does_not_touch_what_waits(world: DelayWorld) -> None:
    world.set(retention_ms=1_000)
    world.send(after(b"x", 30 * DAY))
    world.send((b"now", []))
    world.advance(DAY)
    retain(world.target, world.now_ms())
    retain(world.sibling, world.now_ms())
    world.advance(29 * DAY)
    retain(world.target, world.now_ms())
    assert world.values() == [b"x"]


def test_a18_a_compacted_topic_delivers_what_waited_under_a_key_that_was_written_again(tmp_path: Path) -> None:
    world = DelayWorld(tmp_path, replace(RECORD, cleanup_policy=frozenset({"compact"}), segment_bytes=2_000))
    world.start()
    world.send(after(b"later", 1_000))
    for number in range(20):
        world.send((b"%400d" % number, []))
    while Cleaner(world.logs, 1 << 20).clean_dirtiest(world.now_ms()) is not None:
        pass
    assert len(world.values()) < 20, "it was compacted"
    world.advance(1_000)
    assert world.values()[-1] == b"later"
    world = world.restart()
    assert world.waiting == 0
    world.close()


def test_a18_the_mode_can_be_switched_off_and_what_waits_is_delivered(world: DelayWorld) -> None:
    world.send(after(b"x", 100))
    world.set(delivery_delay_mode="off")
    world.send((b"plain", [("x-deliver-after-ms", b"1000000")]))
    assert world.values() == [b"plain"]
    world = world.restart()
    world.advance(100)
    assert world.values() == [b"plain", b"x"]
    world.close()


def test_the_mode_can_be_switched_on_for_a_topic_with_several_partitions(tmp_path: Path) -> None:
    world = DelayWorld(tmp_path, LogConfig())
    for number in range(3):
        world.lead(number=number)
    world.set(delivery_delay_mode="record")
    world.flush()
    assert [world.schedules.get(("t", number)) is not None for number in range(3)] == [True] * 3
    world.send(after(b"later", 1_000))
    assert world.values() == []
    world.advance(1_000)
    world.settle()
    assert world.values() == [b"later"]
    world.close()


def test_headers_that_do_not_count_are_delivered_with_one_warning(
    world: DelayWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.set(delivery_delay_mode="off")
    world.lead("other")
    for _ in range(3):
        sent = records(after(b"x", 100_000))
        assert world.produce(topic="other", records=sent)[0].code == ErrorCode.NONE
    warnings = [each.getMessage() for each in caplog.records if "x-deliver-" in each.getMessage()]
    assert len(warnings) == 1
    assert "delivery.delay.mode=record" in warnings[0]
    found = [record for view in batches_of(world.log_of("other")) for record in view.records()]
    assert [each.headers for each in found] == [[("x-deliver-after-ms", b"100000")]] * 3


def test_a_partition_with_several_replicas_refuses_what_it_could_lose(world: DelayWorld) -> None:
    world.lead(epoch=1, replicas=(1, 2))
    assert not world.produce(b"now"), "it waits for its follower"
    result = world.send(after(b"later", 100))
    assert result.code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert "broker 2 is in sync and does not copy them" in (result.message or "")
    assert world.waiting == 0
    world.lead(epoch=2, replicas=(1, 2), isr=(1,))
    assert world.send(after(b"later", 100)).code == ErrorCode.NONE


def test_a_follower_delivers_nothing_and_a_new_leader_reads_the_notes_again(world: DelayWorld) -> None:
    world.send(after(b"x", 100))
    world.replicas.follow("t", 0, TOPIC_ID, 2, 1, (2,), (1,), 0)
    world.set(delivery_delay_max_ms=5_000)
    assert world.schedules.get(("t", 0)) is None
    world.advance(1_000)
    assert world.target.end_offset == 1
    world.lead(epoch=2)
    assert world.produce(b"now")[0].code == ErrorCode.LEADER_NOT_AVAILABLE
    world.flush()
    world.advance(1)
    assert world.values() == [b"x"]


def test_what_a_restart_knows_is_what_was_known(world: DelayWorld) -> None:
    world.send(after(b"a", 10_000, id=b"a"), after(b"b", 10_000, id=b"b"), after(b"c", 5, id=b"c"), after(b"d", 9_000))
    world.send(after(b"a2", 20_000, id=b"a"), cancel(b"@3"))
    world.send(after(b"open", 10, id=b"b"), producer=(7, 0, 0), transactional=True)
    world.advance(10)
    for _ in range(2):
        known = world.waiting
        before = world.state
        world = world.restart()
        found = world.state
        assert (known, before.size, before.ids.count) == (world.waiting, found.size, found.ids.count)
    world.mark(7, 0, commit=True)
    world.advance(30_000)
    assert world.values() == [b"c", b"open", b"a2"]
    world.close()


def test_unneeded_notes_are_deleted(world: DelayWorld) -> None:
    world.set(segment_bytes=20_000, file_delete_delay_ms=0)
    for _ in range(100):
        world.send(*(after(b"x" * 100, 100) for _ in range(10)))
        world.advance(100)
    for _ in range(UPKEEP_CHECKS):
        world.advance(CLOCK_CHECK_MS)
    retain(world.sibling, world.now_ms())
    assert world.sibling.size < 40_000
    world = world.restart()
    assert world.waiting == 0
    assert len(world.values()) == 1000
    world.close()


def test_appends_are_refused_until_the_notes_are_read(world: DelayWorld) -> None:
    world.close()
    world = DelayWorld(world.path)
    world.lead()
    assert world.produce(b"x")[0].code == ErrorCode.LEADER_NOT_AVAILABLE
    world.flush()
    assert world.produce(b"x")[0].code == ErrorCode.NONE
    world.close()
