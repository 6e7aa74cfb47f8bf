from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ixion.broker.log.prepare import Origin
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.broker.web.exposition import Exposition
from ixion.broker.web.shares import shares
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.codec.sink import joined
from ixion.language.protocol.messages import k78_share_fetch as k78
from ixion.language.protocol.registry import ApiKey
from ixion.language.records.batches import iter_batches
from ixion.testing.broker import Broker
from tests.apis.asking import versions
from tests.apis.share_kit import ACCEPT, REJECT, RELEASE, RENEW, Member, initialize, parts_of, topic
from tests.apis.test_k01_fetch import filled, id_of, write
from tests.log.support import batch

Join = Callable[..., Member]


@pytest.fixture
def join(broker: Broker, request: pytest.FixtureRequest) -> Iterator[Join]:
    """Makes members of a group of the test's own, on a topic of the test's own with five batches of four records."""
    name = request.node.name.replace("[", "-").replace("]", "")
    filled(broker, name)
    write(broker, name, *[batch(b"a", b"b", b"c", b"d") for _ in range(5)])
    topic_id = id_of(broker, name)
    initialize(broker, name, topic_id)
    made: list[Member] = []

    def one(member: str = "m", version: int = 2) -> Member:
        made.append(Member(broker, name, topic_id, member, version))
        return made[-1]

    yield one
    for each in made:
        each.close()


@pytest.mark.parametrize("version", versions(ApiKey.SHARE_FETCH))
def test_records_are_acquired_once(join: Join, version: int) -> None:
    one, other = join("one", version), join("other", version)
    answer = one.fetch(max_records=5)
    (part,) = parts_of(answer)
    assert answer.acquisition_lock_timeout_ms == 30_000
    assert [(each.first_offset, each.last_offset, each.delivery_count) for each in part.acquired_records] == [(0, 7, 1)]
    data = joined([part.records or b""])
    assert [int(record.offset) for view in iter_batches(data) for record in view.records()] == list(range(8))
    assert other.acquire() == [(8, 19, 1)]
    assert one.acquire(max_wait_ms=0) == []


def test_acknowledgements_ride_in_fetches(join: Join) -> None:
    one = join()
    assert one.acquire(max_records=4) == [(0, 3, 1)]
    assert one.acquire((0, 1, ACCEPT), (2, 3, RELEASE), max_records=1) == [(4, 7, 1)], "not stored yet"
    assert one.acquire(max_records=1) == [(2, 3, 2)]
    answer = one.fetch((0, 0, ACCEPT), (2, 2, ACCEPT), (12, 12, ACCEPT))
    (part,) = parts_of(answer)
    assert ErrorCode(part.acknowledge_error_code) == ErrorCode.INVALID_REQUEST, "12 was not delivered"
    assert one.acquire((2, 3, ACCEPT), max_records=0) == []


def test_a_strict_limit_leaves_the_rest_of_a_batch(join: Join) -> None:
    one = join()
    assert one.acquire(max_records=3, share_acquire_mode=1) == [(0, 2, 1)]
    assert join("other").acquire(max_records=2, share_acquire_mode=1) == [(3, 4, 1)]


def test_the_first_fetch_acknowledges_nothing(join: Join) -> None:
    assert ErrorCode(join().fetch((0, 0, ACCEPT)).error_code) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("epoch", [0, 2, 5])
def test_epochs_count_on(join: Join, epoch: int) -> None:
    one = join()
    one.acquire(max_records=1)
    expected = ErrorCode.NONE if epoch == 0 else ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert ErrorCode(one.fetch(share_session_epoch=epoch).error_code) == expected


def test_a_session_that_never_was(join: Join) -> None:
    for epoch in (1, -1):
        answer = join().fetch(share_session_epoch=epoch)
        assert ErrorCode(answer.error_code) == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_the_final_epoch_releases(join: Join) -> None:
    one = join("one")
    assert one.acquire(max_records=4) == [(0, 3, 1)]
    assert one.acquire((0, 0, ACCEPT), share_session_epoch=-1, topics=(topic(one.topic_id),)) == []
    assert join("other").acquire(max_records=1) == [(0, 3, 2)]
    assert ErrorCode(one.fetch().error_code) == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_a_closed_connection_releases_and_wakes(join: Join) -> None:
    one, other = join("one"), join("other")
    assert one.acquire() == [(0, 19, 1)]
    assert other.acquire(max_wait_ms=0) == []
    one.close()
    assert other.acquire() == [(0, 19, 2)]


def test_a_fetch_waits_for_records(broker: Broker, join: Join) -> None:
    one = join()
    one.acquire()
    name = one.group

    async def later(real: RealBroker) -> None:
        data = batch(b"v")
        append = real.parts.replicas.append
        real.parts.timer.call_later(50, append, 1000, 1, Origin.CLIENT, [(name, 0, data)], lambda _: None)

    broker.call(later)
    assert one.acquire() == [(20, 20, 1)]


def test_an_unknown_topic_fails_alone(join: Join) -> None:
    one = join()
    one.acquire(max_records=1)
    unknown = topic(bytes(range(16)))
    answer = one.fetch(topics=(unknown, topic(one.topic_id)))
    assert answer.error_code == 0
    assert sorted(ErrorCode(part.error_code).name for part in parts_of(answer)) == ["NONE", "UNKNOWN_TOPIC_ID"]
    assert sum(len(part.acquired_records) for part in parts_of(answer)) == 1
    assert one.acquire(topics=(), max_wait_ms=0) == [], "the error is said once"


def test_a_partition_that_is_not_here(join: Join) -> None:
    answer = join().fetch(number=7)
    assert [ErrorCode(part.error_code).name for part in parts_of(answer)] == ["NOT_LEADER_OR_FOLLOWER"]


def test_a_group_without_a_stored_state(broker: Broker, join: Join) -> None:
    known = join()
    stranger = Member(broker, "nobody", known.topic_id)
    answer = stranger.fetch()
    assert [ErrorCode(part.error_code).name for part in parts_of(answer)] == ["UNKNOWN_TOPIC_OR_PARTITION"]
    stranger.close()


def test_forgotten_partitions_are_not_fetched(join: Join) -> None:
    one = join()
    one.acquire(max_records=1)
    gone = k78.ForgottenTopic(topic_id=one.topic_id, partitions=(0,))
    assert one.acquire(topics=(), forgotten_topics_data=(gone,)) == []
    assert one.acquire(max_records=1) == [(4, 7, 1)]


def test_a_renewal_asks_for_nothing_else(join: Join) -> None:
    one = join()
    one.acquire(max_records=4)
    answer = one.fetch((0, 3, RENEW), is_renew_ack=True)
    assert ErrorCode(answer.error_code) == ErrorCode.INVALID_REQUEST
    nothing = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
    assert one.acquire((0, 3, RENEW), is_renew_ack=True, **nothing) == []
    (part,) = parts_of(one.fetch((0, 3, RENEW)))
    assert ErrorCode(part.acknowledge_error_code) == ErrorCode.INVALID_REQUEST, "without the flag"


@pytest.mark.parametrize(("fields", "code"), [
    ({"group_id": ""}, "INVALID_GROUP_ID"),
    ({"group_id": None}, "INVALID_GROUP_ID"),
    ({"member_id": ""}, "INVALID_REQUEST"),
    ({"member_id": None}, "INVALID_REQUEST"),
    ({"member_id": "m" * 37}, "INVALID_REQUEST"),
    ({"max_bytes": -1}, "INVALID_REQUEST"),
])  # fmt: skip
def test_requests_that_are_refused(join: Join, fields: dict[str, Any], code: str) -> None:
    assert ErrorCode(join().fetch(**fields).error_code).name == code


def test_too_many_sessions(broker: Broker, join: Join) -> None:
    one = join("one")
    one.acquire(max_records=1)

    def limit(most: int) -> int:
        async def change(real: RealBroker) -> int:
            sessions = real.parts.share_leaders.get().sessions
            before, sessions.most = sessions.most, most
            return before

        return broker.call(change)

    before = limit(0)
    try:
        answer = join("other").fetch(max_wait_ms=10)
        assert ErrorCode(answer.error_code) == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    finally:
        limit(before)


def test_without_the_feature(broker: Broker, join: Join) -> None:
    def level(number: int) -> None:
        async def change(real: RealBroker) -> None:
            real.parts.image.features["share.version"] = number

        broker.call(change)

    one = join()
    level(0)
    try:
        assert ErrorCode(one.fetch().error_code) == ErrorCode.UNSUPPORTED_VERSION
        assert one.codes((0, 0, ACCEPT)) == ["UNSUPPORTED_VERSION"]
    finally:
        level(1)


def test_metrics_show_the_share_groups(join: Join) -> None:
    page = Exposition()
    one = join()
    one.acquire(max_records=4)
    one.codes((0, 1, ACCEPT), (2, 3, REJECT))

    async def show(real: RealBroker) -> None:
        shares(page, real.parts.share_leaders.made)

    one.broker.call(show)
    text = page.text()
    for line in (
        'ixion_share_archived_total{cause="rejected or at the delivery limit"}',
        'ixion_share_records{state="acquired"} ',
        "ixion_share_sessions ",
        "ixion_share_acquired_total ",
    ):
        assert line in text
