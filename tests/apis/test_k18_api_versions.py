from __future__ import annotations

import socket
import struct

import pytest

from ixion.broker.apis.k18_api_versions import BETWEEN_BROKERS, UNLISTED
from ixion.broker.apis.served import SERVED
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataResponse
from ixion.language.protocol.messages.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from tests.apis.asking import Asking, versions


def ask(asking: Asking, version: int, name: str = "test", software: str = "1.0") -> ApiVersionsResponse:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=software)
    return asking.ask(request if version >= 3 else ApiVersionsRequest(), ApiVersionsResponse, version)


def test_every_version_tells_what_is_served(asking: Asking) -> None:
    for version in versions(ApiKey.API_VERSIONS):
        answer = ask(asking, version)
        assert answer.error_code == 0
        told = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
        assert told == {
            int(key): (key.advertised_from, key.newest) for key in SERVED if key not in UNLISTED | BETWEEN_BROKERS
        }
        assert told[0][0] == 0  # so that librdkafka believes in compression; requests below 3 are refused
        features = {each.name: (each.min_version, each.max_version) for each in answer.supported_features}
        assert ("metadata.version" in features) is (version >= 3)
        if version == 3:
            assert all(low > 0 for low, _ in features.values())
        for finalized in answer.finalized_features:
            assert finalized.max_version_level > 0


def test_the_features_of_kafka_4_3_are_in_force(asking: Asking) -> None:
    levels = {each.name: each.max_version_level for each in ask(asking, 4).finalized_features}
    assert levels == {
        "group.version": 1,
        "metadata.version": 30,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }


@pytest.mark.parametrize("name", ["", "-x", "x-", "a b", "ü", "a\n"])
def test_software_must_have_a_decent_name(asking: Asking, name: str) -> None:
    assert ask(asking, 3, name=name).error_code == ErrorCode.INVALID_REQUEST
    assert ask(asking, 4, software=name).error_code == ErrorCode.INVALID_REQUEST
    assert ask(asking, 4, name="apache-kafka-java", software="4.3.0").error_code == 0


def test_a_client_that_reached_another_broker_than_it_meant_starts_again(asking: Asking, broker: Broker) -> None:
    def meant(cluster_id: str | None, node_id: int) -> int:
        request = ApiVersionsRequest(
            client_software_name="a", client_software_version="1", cluster_id=cluster_id, node_id=node_id
        )
        answer = asking.ask(request, ApiVersionsResponse, 5)
        assert bool(answer.api_keys) is (answer.error_code == 0)
        return answer.error_code

    found = asking.ask(MetadataRequest(topics=()), MetadataResponse, 12)
    here, number = found.cluster_id, found.brokers[0].node_id
    assert [meant(None, -1), meant(here, -1), meant(None, number), meant(here, number)] == [0, 0, 0, 0]
    other = ErrorCode.REBOOTSTRAP_REQUIRED
    assert [meant(here, number + 1), meant("another", number), meant("", -1), meant(None, number + 1)] == [other] * 4


@pytest.mark.parametrize("version", [6, 99, 32767])
def test_a_client_that_is_newer_learns_in_version_0(broker: Broker, version: int) -> None:
    host, _, port = broker.bootstrap.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as client:
        # The body is one that we cannot know.
        frame = struct.pack(">hhih", 18, version, 42, 1) + b"x" + b"\0" + b"whatever this is"
        client.sendall(struct.pack(">i", len(frame)) + frame)
        (size,) = struct.unpack(">i", client.recv(4))
        answer = client.recv(size)
        correlation_id, code, count, key, low, high = struct.unpack(">ihihhh", answer)
        assert (correlation_id, code, count) == (42, ErrorCode.UNSUPPORTED_VERSION, 1)
        assert (key, low, high) == (18, ApiKey.API_VERSIONS.oldest, ApiKey.API_VERSIONS.newest)
        frame = struct.pack(">hhih", 18, 0, 43, 1) + b"x"
        client.sendall(struct.pack(">i", len(frame)) + frame)  # and it goes on in version 0
        assert struct.unpack(">i", client.recv(8)[4:]) == (43,)
