"""read_committed shows neither open nor aborted records, through restarts, kill -9 and compaction."""

from __future__ import annotations

import signal
from collections.abc import Generator
from pathlib import Path

import pytest

from ixion.broker.log.cleaner import Cleaner
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.protocol.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ixion.language.protocol.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.apis.raw import Raw
from tests.apis.reading import read_all
from tests.apis.test_k65_describe_transactions import describe
from tests.apis.txn_kit import batch, end, init, produce
from tests.broker.served import Served

LATEST = -1


def last_stable_offset(raw: Raw) -> int:
    partition = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=1, topics=(ListOffsetsTopic(name="t", partitions=(partition,)),)
    )
    offset: int = raw.ask(ApiKey.LIST_OFFSETS, 5, request).topics[0].partitions[0].offset
    return offset


def create(raw: Raw) -> None:
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, assignments=(), configs=())
    raw.ask(ApiKey.CREATE_TOPICS, 4, CreateTopicsRequest(topics=(topic,), timeout_ms=5_000, validate_only=False))


@pytest.fixture(params=["stop", "kill"])
def ending(request: pytest.FixtureRequest) -> int:
    return signal.SIGTERM if request.param == "stop" else signal.SIGKILL


def lives(data: Path, ending: int) -> Generator[Raw, None, None]:
    """One life of the broker after the other on the same data, each ended as asked when the next is wanted."""
    while True:
        with Served(data, "--data", str(data / "data")) as served:
            with Raw(served.bootstrap) as raw:
                yield raw
            served.stop(ending)


def test_an_open_transaction_goes_on_in_the_next_life(tmp_path: Path, ending: int) -> None:
    broker = lives(tmp_path, ending)
    raw = next(broker)
    create(raw)
    producer_id, epoch = init(raw, "x")
    assert produce(raw, "x", batch(producer_id, epoch, value=b"first")) == "NONE"
    assert last_stable_offset(raw) == 0
    raw = next(broker)
    assert last_stable_offset(raw) == 0
    assert read_all(raw.bootstrap, "t") == []
    assert describe(raw, "x")[0].transaction_state == "Ongoing"
    assert produce(raw, "x", batch(producer_id, epoch, 1, value=b"second")) == "NONE"
    assert end(raw, "x", producer_id, epoch, True, 5) == ("NONE", producer_id, epoch + 1)
    assert read_all(raw.bootstrap, "t") == [b"first", b"second"]
    raw = next(broker)
    assert read_all(raw.bootstrap, "t") == [b"first", b"second"]
    assert end(raw, "x", producer_id, epoch, True, 5) == ("NONE", producer_id, epoch + 1), "said again, known still"
    other, _ = init(raw, "y")
    assert other > producer_id
    broker.close()


def test_aborted_records_stay_unseen_in_every_later_life(tmp_path: Path, ending: int) -> None:
    broker = lives(tmp_path, ending)
    raw = next(broker)
    create(raw)
    one, two = init(raw, "one"), init(raw, "two")
    produce(raw, "one", batch(*one, value=b"aborted"))
    produce(raw, "two", batch(*two, value=b"committed"))
    end(raw, "one", *one, False, 5)
    assert last_stable_offset(raw) == 1, "the other one is still open"
    raw = next(broker)
    assert last_stable_offset(raw) == 1
    assert read_all(raw.bootstrap, "t") == []
    end(raw, "two", *two, True, 5)
    raw = next(broker)
    assert read_all(raw.bootstrap, "t") == [b"committed"]
    assert read_all(raw.bootstrap, "t", committed=False) == [b"aborted", b"committed"]
    broker.close()


def test_compaction_takes_aborted_records_and_keeps_what_was_committed() -> None:
    with Broker({"log.cleaner.enable": False}) as broker:
        broker.create_topic("t", cleanup_policy="compact", min_cleanable_dirty_ratio=0)
        with Raw(broker.bootstrap) as raw:
            producer_id, epoch = init(raw, "x")
            for commit, value in ((True, b"old"), (True, b"kept"), (False, b"aborted")):
                produce(raw, "x", batch(producer_id, epoch, key=b"k", value=value))
                end(raw, "x", producer_id, epoch, commit, 5)
                epoch += 1

            async def compact(real: RealBroker) -> None:
                log = real.parts.logs.logs["t", 0]
                log.roll()
                Cleaner(real.parts.logs, 1 << 20).clean_dirtiest(real.parts.clock_ms())

            broker.call(compact)
            assert read_all(broker.bootstrap, "t") == [b"kept"]
            assert read_all(broker.bootstrap, "t", committed=False) == [b"kept"]
            produce(raw, "x", batch(producer_id, epoch, key=b"k", value=b"open"))
            assert read_all(broker.bootstrap, "t") == [b"kept"]
