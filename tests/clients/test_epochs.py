"""Positions after a change of leaders (KIP-320): read on where the logs agree, and truncation noticed where not."""

from __future__ import annotations

import pytest

from ixion.clients import Consumer
from ixion.clients.core.consumer.errors import LogTruncationError
from ixion.clients.core.consumer.subscription import NO_EPOCH, Assigned
from ixion.clients.reader import Reader
from ixion.language.protocol.registry import ApiKey
from tests.clients.fake import FakeCluster
from tests.clients.test_reader import ORDERS, fill, read

PLACE = ORDERS[0]


def test_the_rules() -> None:
    state = Assigned(PLACE)
    state.start_at(0, NO_EPOCH)
    assert not state.must_check(4)  # nothing is read yet
    state.fetch_epoch = 4
    assert not state.must_check(4)
    assert state.must_check(6)
    state.checked_epoch = 6
    assert not state.must_check(6)
    assert state.must_check(7)
    assert not state.must_check(-1)  # a broker that knows no epochs
    state.start_at(9, NO_EPOCH)
    assert not state.must_check(8)


def test_a_new_leader_with_the_same_records_is_read_on() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        log = fakes.logs[PLACE]
        log.epoch = 3
        fill(fakes, PLACE, 2)
        with Reader(fakes.bootstrap, {PLACE: 0}) as reader:
            read(reader, {PLACE: 10})
            log.lead_anew(end=10)
            values = fill(fakes, PLACE, 1)
            assert read(reader, {PLACE: 5})[PLACE] == values[10:]
        assert fakes.count(ApiKey.OFFSET_FOR_LEADER_EPOCH) == 1


def test_a_reader_goes_back_to_where_the_logs_part() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        log = fakes.logs[PLACE]
        log.epoch = 3
        fill(fakes, PLACE, 3)
        with Reader(fakes.bootstrap, {PLACE: 0}) as reader:
            read(reader, {PLACE: 15})
            log.lead_anew(end=5)
            values = fill(fakes, PLACE, 3)
            assert read(reader, {PLACE: 15})[PLACE] == values[5:]


@pytest.mark.parametrize("policy", ["earliest", "none"])
def test_a_consumer_goes_back_too_or_says_so(policy: str) -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        log = fakes.logs[PLACE]
        log.epoch = 3
        fill(fakes, PLACE, 3)
        with Consumer(fakes.bootstrap, auto_offset_reset=policy) as consumer:
            consumer.assign([PLACE])
            consumer.seek(PLACE, 0)
            while consumer.position(PLACE) < 15:
                consumer.poll(5)
            log.lead_anew(end=5)
            fill(fakes, PLACE, 3)
            if policy == "none":
                for _ in range(2):  # until the caller decides
                    with pytest.raises(LogTruncationError, match="has other records from offset 5 on") as caught:
                        consumer.poll(60)
                    assert caught.value.offset == 5
                consumer.seek(PLACE, 5)
            found: list[int] = []
            while len(found) < 15:
                found += [record.offset for record in consumer.poll(5)]
            assert found == list(range(5, 20))
