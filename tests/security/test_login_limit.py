from __future__ import annotations

from typing import Any

from ixion.broker.network.overdue import LOGIN_NS, NEVER
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.protocol.messages.k18_api_versions import ApiVersionsRequest
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from tests.apis.guards.secured import AskingAs, secured
from tests.apis.raw import Raw


def connections(real: RealBroker) -> list[Any]:
    processors = [each for acceptor in real.parts.server.acceptors for each in acceptor.processors]
    return [each for processor in processors for each in processor.connections.values()]


def test_who_never_logs_in_is_disconnected() -> None:
    async def limits(real: RealBroker) -> list[int]:
        return [each._overdue.login_ns for each in connections(real)]

    async def fire(real: RealBroker) -> None:
        for each in connections(real):
            if each._overdue.login_ns < NEVER:
                each._overdue.login_ns = 0
                each._overdue.run()

    with secured() as broker, Raw(broker.bootstrap) as stranger, AskingAs(broker.bootstrap, "root"):
        stranger.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
        found = broker.call(limits)
        assert sorted(each == NEVER for each in found) == [False, True]
        assert 0 < min(found) < NEVER
        assert LOGIN_NS == 60 * 10**9
        broker.call(fire)
        assert len(broker.call(limits)) == 1
        assert closed(stranger)


def closed(client: Raw) -> bool:
    return client._socket.recv(1) == b""


def test_without_a_login_there_is_no_limit() -> None:
    async def limits(real: RealBroker) -> list[int]:
        return [each._overdue.login_ns for each in connections(real)]

    with Broker() as broker, Raw(broker.bootstrap) as client:
        client.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
        assert broker.call(limits) == [NEVER]
