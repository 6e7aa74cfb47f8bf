"""A metadata store that fails costs nobody the connection: each topic is answered with a code."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from ixion.broker.metadata.errors import ConnectionLostError, SessionExpiredError, StoreUnusableError
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ixion.language.protocol.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ixion.testing.broker import Broker
from tests.apis.asking import Asking

# And the code that clients get.
FAULTS: dict[str, tuple[Callable[[], Exception], ErrorCode]] = {
    "the disk is full": (
        lambda: StoreUnusableError("metadata.sqlite", "database or disk is full"),
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ),
    "the session is over": (lambda: SessionExpiredError("/", "it was too late"), ErrorCode.NOT_CONTROLLER),
    "the connection is lost": (lambda: ConnectionLostError("/", "it was cut"), ErrorCode.REQUEST_TIMED_OUT),
}


@pytest.fixture(params=FAULTS)
def failing(request: pytest.FixtureRequest) -> Iterator[Asking]:
    with Broker() as broker, Asking(broker.bootstrap) as asking:
        broker.create_topic("there")

        async def break_it(real: RealBroker) -> None:
            async def refuse(_operations: object) -> None:
                raise FAULTS[request.param][0]()

            real.parts.session.multi = refuse  # type: ignore[method-assign, assignment]

        broker.call(break_it)
        yield asking


def test_topics_that_metadata_would_create(failing: Asking, request: pytest.FixtureRequest) -> None:
    names = ("new", "there", "__consumer_offsets", "other", "bad name")
    topics = tuple(MetadataRequestTopic(name=name) for name in names)
    answer = failing.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=True), MetadataResponse)
    failed = FAULTS[request.node.callspec.params["failing"]][1]
    assert {topic.name: topic.error_code for topic in answer.topics} == {
        "new": failed,
        "there": ErrorCode.NONE,
        "__consumer_offsets": failed,
        "other": failed,
        "bad name": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }


@pytest.mark.parametrize("key_type", [0, 1])
def test_coordinators_whose_topic_cannot_be_created(failing: Asking, key_type: int) -> None:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=("a", "b"))
    answer = failing.ask(request, FindCoordinatorResponse)
    codes = [each.error_code for each in answer.coordinators]
    assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2


def test_a_lost_session_is_no_bug_of_ours(failing: Asking, caplog: pytest.LogCaptureFixture) -> None:
    """A traceback asks the operator for a report. Only a store that fails is worth one."""
    wish = CreatableTopic(name="n", num_partitions=1, replication_factor=1, assignments=(), configs=())
    request = CreateTopicsRequest(topics=(wish,), timeout_ms=5000)
    (refused,) = failing.ask(request, CreateTopicsResponse).topics
    tracebacks = [each for each in caplog.records if each.exc_info]
    assert bool(tracebacks) == (refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR)
