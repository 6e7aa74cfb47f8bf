from __future__ import annotations

import threading

import pytest

from ixion.broker.log.prepare import Origin
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.model.errors import ErrorCode
from ixion.language.model.ids import ZERO_ID
from ixion.language.protocol.codec.sink import joined
from ixion.language.protocol.messages.k01_fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from ixion.language.protocol.registry import ApiKey
from ixion.language.records.batches import iter_batches
from ixion.testing.broker import Broker
from tests.apis.asking import Asking, versions
from tests.log.support import batch, marker

BY_ID = 13
SIZE = len(batch(b"v"))


def id_of(broker: Broker, topic: str) -> bytes:
    async def look(real: RealBroker) -> bytes:
        return real.parts.image.topics[topic].topic_id

    return broker.call(look)


def write(broker: Broker, topic: str, *batches: bytes, number: int = 0, origin: Origin = Origin.CLIENT) -> None:
    async def work(real: RealBroker) -> None:
        for data in batches:
            real.parts.replicas.append(1000, 1, origin, [(topic, number, data)], lambda _results: None)

    broker.call(work)


def filled(broker: Broker, name: str, count: int = 0, partitions: int = 1, **config: object) -> str:
    broker.create_topic(name, partitions, **config)
    for number in range(partitions):
        write(broker, name, *[batch(b"v")] * count, number=number)
    return name


def at(
    number: int = 0,
    offset: int = 0,
    *,
    max_bytes: int = 1 << 20,
    current_leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
) -> FetchPartition:
    return FetchPartition(
        partition=number,
        fetch_offset=offset,
        partition_max_bytes=max_bytes,
        current_leader_epoch=current_leader_epoch,
        last_fetched_epoch=last_fetched_epoch,
    )


def fetching(
    *topics: FetchTopic,
    wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    session: tuple[int, int] = (0, -1),
    forgotten: tuple[ForgottenTopic, ...] = (),
    isolation: int = 0,
    replica: int = -1,
    version: int = 12,
) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_id=session[0],
        session_epoch=session[1],
        topics=topics,
        forgotten_topics_data=forgotten,
        isolation_level=isolation,
        replica_id=replica if version < 15 else -1,
        replica_state=ReplicaState(replica_id=replica if version >= 15 else -1),
    )


def of(topic: str, *partitions: FetchPartition) -> FetchTopic:
    return FetchTopic(topic=topic, partitions=partitions or (at(),))


def by_id(topic_id: bytes, *partitions: FetchPartition) -> FetchTopic:
    return FetchTopic(topic_id=topic_id, partitions=partitions or (at(),))


def fetch(asking: Asking, *topics: FetchTopic, version: int = 12, **options: object) -> FetchResponse:
    return asking.ask(fetching(*topics, version=version, **options), FetchResponse, version)  # type: ignore[arg-type]


def only(answer: FetchResponse) -> PartitionData:
    ((part,),) = [topic.partitions for topic in answer.responses]
    return part


def offsets(part: PartitionData) -> list[int]:
    return [int(record.offset) for view in iter_batches(joined([part.records or b""])) for record in view.records()]


def told(answer: FetchResponse) -> list[tuple[str, int]]:
    """The partitions that an answer is about."""
    return [(topic.topic, part.partition_index) for topic in answer.responses for part in topic.partitions]


def test_every_version_by_name_and_by_id(broker: Broker, asking: Asking) -> None:
    topic = filled(broker, "versions", 2)
    topic_id = id_of(broker, topic)
    for version in versions(ApiKey.FETCH):
        wanted = by_id(topic_id) if version >= BY_ID else of(topic)
        answer = fetch(asking, wanted, version=version)
        (found,) = answer.responses
        assert (found.topic, found.topic_id) == (("", topic_id) if version >= BY_ID else (topic, ZERO_ID))
        part = only(answer)
        assert (part.partition_index, part.error_code, part.high_watermark, part.last_stable_offset) == (0, 0, 2, 2)
        assert part.log_start_offset == (0 if version >= 5 else -1)
        assert part.preferred_read_replica == -1
        assert part.aborted_transactions is None
        assert offsets(part) == [0, 1]
        assert answer.session_id == 0


def test_the_middle_of_a_batch_gives_the_whole_batch(broker: Broker, asking: Asking) -> None:
    topic = filled(broker, "middle")
    write(broker, topic, batch(b"a", b"b", b"c"), batch(b"d"))
    assert offsets(only(fetch(asking, of(topic, at(offset=1))))) == [0, 1, 2, 3]
    assert offsets(only(fetch(asking, of(topic, at(offset=3))))) == [3]


@pytest.mark.parametrize("offset", [-1, -(2**63), 3, 2**63 - 1])
def test_offsets_out_of_range(broker: Broker, asking: Asking, offset: int) -> None:
    topic = filled(broker, f"range{offset}", 2)
    part = only(fetch(asking, of(topic, at(offset=offset))))
    assert (part.error_code, part.records or b"") == (ErrorCode.OFFSET_OUT_OF_RANGE, b"")
    assert (part.high_watermark, part.log_start_offset) in ((2, 0), (-1, -1))


def test_limits(broker: Broker, asking: Asking) -> None:
    topic = filled(broker, "limits", 5, partitions=2)

    def lengths(max_bytes: int, *each: int) -> list[int]:
        wanted = of(topic, *(at(number, max_bytes=size) for number, size in enumerate(each)))
        answer = fetch(asking, wanted, max_bytes=max_bytes)
        return [len(offsets(part)) for part in answer.responses[0].partitions]

    assert lengths(1 << 20, 1 << 20, 1 << 20) == [5, 5]
    assert lengths(1 << 20, 2 * SIZE, 3 * SIZE - 1) == [2, 2]
    assert lengths(6 * SIZE, 1 << 20, 1 << 20) == [5, 1]
    assert lengths(5 * SIZE, 1 << 20, 1 << 20) == [5, 0]
    assert lengths(1, 1, 1) == [1, 0]
    assert lengths(0, 0, 0) == [1, 0]


@pytest.mark.parametrize("size", [-1, -(2**31)])
def test_negative_limits_are_harmless(broker: Broker, asking: Asking, size: int) -> None:
    topic = filled(broker, f"negative{size}", 1)
    fetch(asking, of(topic, at(max_bytes=size)))
    fetch(asking, of(topic), max_bytes=size)
    assert offsets(only(fetch(asking, of(topic)))) == [0]


def test_the_broker_has_a_limit_of_its_own() -> None:
    with Broker({"fetch.max.bytes": 1024}) as broker, Asking(broker.bootstrap) as asking:
        topic = filled(broker, "t", 50)
        part = only(fetch(asking, of(topic), max_bytes=1 << 30))
        assert 0 < len(part.records or b"") <= 1024


def test_the_limit_of_the_broker_holds_for_followers_as_well() -> None:
    """A client that names a broker's id is taken for a follower; it must not get around the limits that way."""
    with Broker({"fetch.max.bytes": 1024}) as small, Asking(small.bootstrap) as asking:
        topic = filled(small, "t", 50)

        async def add_a_replica(real: RealBroker) -> None:
            real.parts.replicas.partitions[topic, 0].make_leader(1, (1, 2), (1, 2))

        small.call(add_a_replica)
        part = only(fetch(asking, of(topic, at()), replica=2, max_bytes=2**31 - 1))
        assert (part.error_code, 0 < len(joined([part.records or b""])) <= 1024) == (0, True)
        for broker_id, epoch, code in (
            (3, 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
            (3, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ):
            part = only(fetch(asking, of(topic, at(current_leader_epoch=epoch)), replica=broker_id))
            assert (part.error_code, part.records or b"") == (code, b"")


@pytest.mark.parametrize("version", [12, 15])
def test_a_client_that_names_itself_replica_minus_two_is_a_consumer(
    broker: Broker, asking: Asking, version: int
) -> None:
    """As in Kafka since 3.0; it read records ten minutes before they were due."""
    settings: dict[str, object] = {"delivery_delay_mode": "fixed", "delivery_delay_ms": "600000"}
    topic = filled(broker, f"minus-two-{version}", 2, 1, message_timestamp_type="LogAppendTime", **settings)
    wanted = by_id(id_of(broker, topic)) if version >= BY_ID else of(topic)
    for replica in (-1, -2, -3):
        part = only(fetch(asking, wanted, replica=replica, version=version, min_bytes=0))
        assert (part.error_code, part.high_watermark, offsets(part)) == (0, 0, [])


def test_a_partition_that_is_named_a_thousand_times_is_watched_and_answered_once(broker: Broker) -> None:
    topic = filled(broker, "thousand")
    answers: list[FetchResponse] = []

    def poll() -> None:
        with Asking(broker.bootstrap) as asking:
            answers.append(fetch(asking, *[of(topic, *[at()] * 100)] * 10, wait_ms=15_000))

    async def watched(real: RealBroker) -> int:
        return real.parts.replicas.fetch_purgatory.watched

    polling = threading.Thread(target=poll)
    polling.start()
    while broker.call(watched) == 0:
        pass
    assert broker.call(watched) == 1
    write(broker, topic, batch(b"v"))
    polling.join()
    assert offsets(only(answers[0])) == [0]


def test_a_session_of_very_many_partitions(broker: Broker, asking: Asking) -> None:
    topic = filled(broker, "many", 1, partitions=300)
    every = of(topic, *[at(number) for number in range(300)])
    first = fetch(asking, every, session=(0, 0))
    assert len(told(first)) == 300
    read = of(topic, *[at(number, 1) for number in range(200)])
    second = fetch(asking, read, session=(first.session_id, 1))
    assert {number for _, number in told(second)} == set(range(200, 300))
    gone = tuple(ForgottenTopic(topic=topic, partitions=tuple(range(100, 300))) for _ in range(2))
    third = fetch(asking, session=(first.session_id, 2), forgotten=gone)
    assert (third.error_code, told(third)) == (0, [])


def test_a_batch_larger_than_every_limit_comes_whole(broker: Broker, asking: Asking) -> None:
    topic = filled(broker, "large", 0)
    write(broker, topic, batch(b"x" * 100_000))
    assert offsets(only(fetch(asking, of(topic, at(max_bytes=10)), max_bytes=10))) == [0]


def test_unknown_topics_partitions_and_ids(broker: Broker, asking: Asking) -> None:
    topic = filled(broker, "known", 1)
    answer = fetch(asking, of("none"), of(topic, at(9), at(-1)), of(topic))
    assert [part.error_code for found in answer.responses for part in found.partitions] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
    ]
    answer = fetch(asking, by_id(b"x" * 16), by_id(id_of(broker, topic)), version=13)
    assert [found.topic_id for found in answer.responses] == [b"x" * 16, id_of(broker, topic)]
    assert [found.partitions[0].error_code for found in answer.responses] == [ErrorCode.UNKNOWN_TOPIC_ID, 0]
    assert only(fetch(asking, by_id(ZERO_ID), version=13)).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_topic_with_an_empty_name(asking: Asking) -> None:
    assert only(fetch(asking, of(""))).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_leader_epochs(broker: Broker, asking: Asking) -> None:
    topic = filled(broker, "epochs", 1)
    for epoch, code in ((0, 0), (-1, 0), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)):
        assert only(fetch(asking, of(topic, at(current_leader_epoch=epoch)))).error_code == code

    async def bump(real: RealBroker) -> None:
        partition = real.parts.replicas.partitions[topic, 0]
        real.parts.replicas.lead(topic, 0, partition.topic_id, 3, partition.isr, partition.replicas)

    broker.call(bump)
    part = only(fetch(asking, by_id(id_of(broker, topic), at(current_leader_epoch=2)), version=16))
    assert part.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert part.current_leader.leader_id >= 0  # where to go instead


def test_a_history_that_is_not_ours(broker: Broker, asking: Asking) -> None:
    topic = filled(broker, "history", 2)

    async def bump(real: RealBroker) -> None:
        partition = real.parts.replicas.partitions[topic, 0]
        real.parts.replicas.lead(topic, 0, partition.topic_id, 5, partition.isr, partition.replicas)

    broker.call(bump)
    write(broker, topic, batch(b"v"))
    part = only(fetch(asking, of(topic, at(offset=3, last_fetched_epoch=3))))
    assert (part.error_code, part.diverging_epoch.epoch, part.diverging_epoch.end_offset) == (0, 0, 2)
    part = only(fetch(asking, of(topic, at(offset=2, last_fetched_epoch=0))))
    assert (part.diverging_epoch.epoch, offsets(part)) == (-1, [2])


@pytest.mark.parametrize("version", [12, 15, 17])
def test_a_client_that_says_it_is_a_broker(broker: Broker, asking: Asking, version: int) -> None:
    topic = filled(broker, f"replica{version}", 1)
    wanted = by_id(id_of(broker, topic)) if version >= BY_ID else of(topic)
    part = only(fetch(asking, wanted, replica=5, version=version))
    assert (part.error_code, part.records or b"") == (ErrorCode.NOT_LEADER_OR_FOLLOWER, b"")


def test_read_committed(broker: Broker, asking: Asking) -> None:
    topic = filled(broker, "isolated")
    write(broker, topic, batch(b"a", producer=(7, 0, 0), transactional=True))
    write(broker, topic, marker(7, 0, commit=False), origin=Origin.COORDINATOR)
    write(broker, topic, batch(b"b"), batch(b"c", producer=(8, 0, 0), transactional=True), batch(b"d"))
    part = only(fetch(asking, of(topic), isolation=1))
    assert (part.last_stable_offset, part.high_watermark, max(offsets(part))) == (3, 5, 2)
    assert [(each.producer_id, each.first_offset) for each in part.aborted_transactions or ()] == [(7, 0)]
    part = only(fetch(asking, of(topic), isolation=0))
    assert (max(offsets(part)), part.aborted_transactions) == (4, None)


def test_a_long_poll_ends_with_the_record_and_not_with_the_time(broker: Broker, asking: Asking) -> None:
    topic = filled(broker, "poll")
    writer = threading.Timer(0.05, write, (broker, topic, batch(b"v")))
    writer.start()
    assert offsets(only(fetch(asking, of(topic), wait_ms=15_000))) == [0]
    writer.join()


def test_a_long_poll_ends_when_its_topic_does(broker: Broker, asking: Asking) -> None:
    topic = filled(broker, "ending")
    deletion = threading.Timer(0.05, lambda: broker.call(lambda real: real.parts.controller.topics.delete([topic])))
    deletion.start()
    part = only(fetch(asking, of(topic), wait_ms=15_000))
    assert part.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    deletion.join()


def test_a_timeout_of_weeks_is_capped(broker: Broker, asking: Asking) -> None:
    """Otherwise the requests of clients that are long gone would be kept for weeks."""
    topic = filled(broker, "weeks")

    async def waits(real: RealBroker) -> list[int]:
        wheel = real.parts.replicas.fetch_purgatory
        return [each.delay_ms for shard in wheel._shards for each in shard.operations((topic, 0))]

    waiter = threading.Thread(target=lambda: fetch(asking, of(topic), wait_ms=2**31 - 1))
    waiter.start()
    found = broker.call(waits)
    while not found:
        found = broker.call(waits)
    write(broker, topic, batch(b"v"))
    waiter.join(20)
    assert found == [600_000]


def test_nothing_wanted_is_nothing_given(asking: Asking) -> None:
    assert fetch(asking, wait_ms=15_000).responses == ()


class TestSessions:
    """KIP-227. A session is (id, epoch of the next request)."""

    @pytest.fixture(autouse=True)
    def topic(self, broker: Broker, request: pytest.FixtureRequest) -> str:
        return filled(broker, f"s-{request.node.name}"[:200].replace("[", "-").replace("]", ""), 1, partitions=3)

    def begin(self, asking: Asking, topic: str, *partitions: FetchPartition) -> int:
        answer = fetch(asking, of(topic, *(partitions or (at(0), at(1), at(2)))), session=(0, 0))
        assert answer.error_code == 0
        assert answer.session_id > 0
        return answer.session_id

    def test_a_full_fetch_makes_a_session_and_tells_all(self, asking: Asking, topic: str) -> None:
        answer = fetch(asking, of(topic, at(0), at(1, 1)), session=(0, 0))
        assert told(answer) == [(topic, 0), (topic, 1)]
        assert answer.session_id != 0

    def test_without_a_session_none_is_made(self, asking: Asking, topic: str) -> None:
        assert fetch(asking, of(topic)).session_id == 0

    def test_nothing_to_fetch_makes_none(self, asking: Asking) -> None:
        assert fetch(asking, session=(0, 0)).session_id == 0

    def test_an_incremental_fetch_tells_only_news(self, broker: Broker, asking: Asking, topic: str) -> None:
        session = self.begin(asking, topic, at(0, 1), at(1, 1), at(2, 1))
        answer = fetch(asking, session=(session, 1))
        assert (answer.session_id, told(answer)) == (session, [])
        write(broker, topic, batch(b"v"), number=1)
        answer = fetch(asking, session=(session, 2))
        assert told(answer) == [(topic, 1)]
        assert offsets(only(answer)) == [1]
        answer = fetch(asking, of(topic, at(1, 2)), session=(session, 3))
        assert told(answer) == []

    def test_an_added_partition_is_in_the_next_answer(self, asking: Asking, topic: str) -> None:
        session = self.begin(asking, topic, at(0, 1))
        answer = fetch(asking, of(topic, at(2, 1)), session=(session, 1))
        assert told(answer) == [(topic, 2)]

    def test_a_forgotten_partition_is_in_no_later_answer(self, asking: Asking, topic: str) -> None:
        session = self.begin(asking, topic)
        forgotten = (ForgottenTopic(topic=topic, partitions=(0, 1)),)
        answer = fetch(asking, session=(session, 1), forgotten=forgotten)
        assert told(answer) == [(topic, 2)]
        assert told(fetch(asking, session=(session, 2))) == [(topic, 2)]

    def test_a_session_without_partitions_is_over(self, asking: Asking, topic: str) -> None:
        session = self.begin(asking, topic)
        forgotten = (ForgottenTopic(topic=topic, partitions=(0, 1, 2)),)
        answer = fetch(asking, session=(session, 1), forgotten=forgotten, wait_ms=0)
        assert (answer.session_id, told(answer)) == (0, [])
        assert fetch(asking, session=(session, 2)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    def test_an_error_is_news_every_time(self, asking: Asking, topic: str) -> None:
        session = self.begin(asking, topic, at(0, 1), at(7))
        for epoch in (1, 2):
            answer = fetch(asking, session=(session, epoch))
            assert told(answer) == [(topic, 7)]
            assert only(answer).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_what_comes_after_an_error_is_news(self, broker: Broker, asking: Asking, topic: str) -> None:
        session = self.begin(asking, topic, at(0, 9))
        assert only(fetch(asking, session=(session, 1))).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        answer = fetch(asking, of(topic, at(0, 1)), session=(session, 2))
        assert (told(answer), only(answer).error_code) == ([(topic, 0)], 0)
        assert told(fetch(asking, session=(session, 3))) == []

    def test_a_log_start_that_moves_is_news(self, broker: Broker, asking: Asking, topic: str) -> None:
        session = self.begin(asking, topic, at(0, 1))
        assert told(fetch(asking, session=(session, 1))) == []

        async def delete(real: RealBroker) -> None:
            real.parts.replicas.delete_records(1000, [(topic, 0, 1)], lambda _results: None)

        broker.call(delete)
        answer = fetch(asking, session=(session, 2))
        assert (told(answer), only(answer).log_start_offset) == ([(topic, 0)], 1)

    def test_an_unknown_session(self, asking: Asking, topic: str) -> None:
        answer = fetch(asking, of(topic), session=(12345, 1))
        assert (answer.error_code, answer.responses) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ())

    @pytest.mark.parametrize("epoch", [2, 5, 2**31 - 1])
    def test_a_wrong_epoch(self, asking: Asking, topic: str, epoch: int) -> None:
        session = self.begin(asking, topic)
        answer = fetch(asking, session=(session, epoch))
        assert (answer.error_code, answer.responses) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, ())
        assert fetch(asking, session=(session, 1)).error_code == 0  # the session has not suffered

    def test_an_epoch_again(self, asking: Asking, topic: str) -> None:
        session = self.begin(asking, topic)
        fetch(asking, session=(session, 1))
        assert fetch(asking, session=(session, 1)).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH

    def test_an_epoch_again_while_the_first_still_waits(self, broker: Broker, asking: Asking, topic: str) -> None:
        """A client that lost its connection comes back: the epoch was used when the request came, not when it ends."""
        session = self.begin(asking, topic, at(0, 1))
        fetch(asking, session=(session, 1))
        other = Asking(broker.bootstrap)
        waiter = threading.Thread(target=lambda: fetch(other, session=(session, 2), wait_ms=15_000))
        waiter.start()

        async def parked(real: RealBroker) -> bool:
            return real.parts.replicas.fetch_purgatory.delayed > 0

        while not broker.call(parked):
            pass
        assert fetch(asking, session=(session, 2)).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        assert fetch(asking, session=(session, 3)).error_code == 0
        write(broker, topic, batch(b"v"))
        waiter.join(15)
        assert not waiter.is_alive()
        other._socket.close()
        assert fetch(asking, session=(session, 4)).error_code == 0

    def test_the_last_one_ends_it(self, asking: Asking, topic: str) -> None:
        session = self.begin(asking, topic)
        answer = fetch(asking, of(topic), session=(session, -1))
        assert (answer.error_code, answer.session_id, told(answer)) == (0, 0, [(topic, 0)])
        assert fetch(asking, session=(session, 1)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    def test_a_full_fetch_takes_the_place_of_the_old_session(self, asking: Asking, topic: str) -> None:
        session = self.begin(asking, topic)
        answer = fetch(asking, of(topic), session=(session, 0))
        assert answer.session_id not in (0, session)
        assert fetch(asking, session=(session, 1)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert fetch(asking, session=(answer.session_id, 1)).error_code == 0

    def test_names_and_ids_do_not_mix(self, broker: Broker, asking: Asking, topic: str) -> None:
        session = self.begin(asking, topic)
        answer = fetch(asking, session=(session, 1), version=13)
        assert answer.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        wanted = by_id(id_of(broker, topic))
        answer = fetch(asking, wanted, session=(0, 0), version=13)
        assert fetch(asking, session=(answer.session_id, 1), version=12).error_code == (
            ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        )

    def test_a_session_by_id(self, broker: Broker, asking: Asking, topic: str) -> None:
        topic_id = id_of(broker, topic)
        answer = fetch(asking, by_id(topic_id, at(0, 1), at(1, 1)), session=(0, 0), version=13)
        session = answer.session_id
        assert told(fetch(asking, session=(session, 1), version=13)) == []
        write(broker, topic, batch(b"v"), number=1)
        answer = fetch(asking, session=(session, 2), version=17)
        ((found),) = answer.responses
        assert (found.topic_id, found.partitions[0].partition_index) == (topic_id, 1)
        forgotten = (ForgottenTopic(topic_id=topic_id, partitions=(1,)),)
        assert fetch(asking, session=(session, 3), forgotten=forgotten, version=13).responses == ()

    def test_a_topic_that_is_deleted_and_created_again_is_another_one(
        self, broker: Broker, asking: Asking, topic: str
    ) -> None:
        topic_id = id_of(broker, topic)
        session = fetch(asking, by_id(topic_id, at(0, 1)), session=(0, 0), version=13).session_id
        broker.call(lambda real: real.parts.controller.topics.delete([topic]))
        part = only(fetch(asking, session=(session, 1), version=13))
        assert part.error_code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
        broker.create_topic(topic)
        part = only(fetch(asking, session=(session, 2), version=13))
        assert part.error_code == ErrorCode.INCONSISTENT_TOPIC_ID

    def test_a_partition_that_gave_records_goes_to_the_end_of_the_session(
        self, broker: Broker, asking: Asking, topic: str
    ) -> None:
        """Room for one batch each time: nobody starves."""
        session = self.begin(asking, topic, at(0, 1), at(1, 1), at(2, 1))
        for number in range(3):
            write(broker, topic, *[batch(b"v")] * 5, number=number)
        turn = []
        for epoch in range(1, 7):
            answer = fetch(asking, session=(session, epoch), max_bytes=1)
            turn += [part.partition_index for found in answer.responses for part in found.partitions if part.records]
        assert turn == [0, 1, 2, 0, 1, 2]


def test_sessions_end_when_there_are_too_many() -> None:
    """All places are taken by sessions in use: a newcomer gets none, and can fetch all the same."""
    with Broker({"max.incremental.fetch.session.cache.slots": 2}) as broker, Asking(broker.bootstrap) as asking:
        topic = filled(broker, "t", 1, partitions=3)
        first = fetch(asking, of(topic), session=(0, 0)).session_id
        second = fetch(asking, of(topic), session=(0, 0)).session_id
        third = fetch(asking, of(topic, at(0), at(1), at(2)), session=(0, 0))
        assert (third.session_id, len(told(third))) == (0, 3)
        assert fetch(asking, session=(first, 1)).error_code == 0
        fetch(asking, session=(second, -1))
        assert fetch(asking, of(topic), session=(0, 0)).session_id != 0


def test_the_answer_names_each_topic_once_for_neighbours(broker: Broker, asking: Asking) -> None:
    one, two = filled(broker, "one", 1, partitions=2), filled(broker, "two", 1)
    answer = fetch(asking, of(one, at(0), at(1)), of(two))
    assert [(found.topic, len(found.partitions)) for found in answer.responses] == [(one, 2), (two, 1)]
    assert isinstance(answer.responses[0], FetchableTopicResponse)
