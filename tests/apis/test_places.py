"""What waits for the controller keeps nobody else waiting, however many do."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ixion.language.protocol.messages.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from ixion.language.protocol.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ixion.language.protocol.notation import Struct
from ixion.testing.broker import Broker
from tests.apis.asking import Asking

MORE_THAN_PLACES = 12  # num.io.threads is 8
WANTED: dict[str, tuple[Struct, type[Struct]]] = {
    "a coordinator": (FindCoordinatorRequest(key_type=0, coordinator_keys=("g",)), FindCoordinatorResponse),
    "a missing topic": (MetadataRequest(topics=(MetadataRequestTopic(name="missing"),)), MetadataResponse),
    "a new topic": (
        CreateTopicsRequest(
            topics=(CreatableTopic(name="new", num_partitions=1, replication_factor=1, assignments=(), configs=()),)
        ),
        CreateTopicsResponse,
    ),
}


@pytest.mark.parametrize("what", WANTED)
def test_others_are_served_while_many_wait_for_the_controller(what: str) -> None:
    request, answer = WANTED[what]
    with Broker() as broker:
        turn: list[asyncio.Lock] = []

        async def hold(real: RealBroker) -> None:
            turn.append(real.parts.sole_controller.queue.turn)
            await turn[0].acquire()

        async def let_go(_real: RealBroker) -> None:
            turn[0].release()

        def ask() -> None:
            with Asking(broker.bootstrap) as asking:
                asking.ask(request, answer)

        async def busy(real: RealBroker) -> int:
            processors = real.parts.server._processors()
            return sum(1 for each in processors for connection in each.connections.values() if connection.busy)

        broker.call(hold)
        waiting = [threading.Thread(target=ask) for _ in range(MORE_THAN_PLACES)]
        for each in waiting:
            each.start()
        while broker.call(busy) < MORE_THAN_PLACES:
            pass
        with Asking(broker.bootstrap) as other:
            assert other.ask(ApiVersionsRequest(), ApiVersionsResponse, 0).error_code == 0
        broker.call(let_go)
        for each in waiting:
            each.join(20)
            assert not each.is_alive()
