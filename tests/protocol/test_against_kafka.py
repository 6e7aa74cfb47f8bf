"""What kio lacks, judged by Apache Kafka: ZooKeeper-era keys and stored records; and a second opinion on the rest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ixion.language.protocol import storage
from ixion.language.protocol.codec.message import MessageCodec
from ixion.language.protocol.envelope import REQUEST_HEADERS
from ixion.language.protocol.headers import RequestHeader
from ixion.language.protocol.notation import StructMeta
from ixion.language.protocol.registry import ApiKey
from ixion.language.protocol.stored import (
    consumer_group,
    consumer_protocol,
    control_records,
    group_metadata,
    offset_commit,
    producer_snapshot,
    share_group,
    share_state,
    streams_group,
    transaction_log,
)
from tests.protocol.java_oracle import JavaOracle, as_ours, as_shown
from tests.protocol.strategies import values

ZOOKEEPER_ERA = [ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA, ApiKey.CONTROLLED_SHUTDOWN]
OLD_VERSIONS = [(api, version) for api in ZOOKEEPER_ERA for version in range(api.oldest, api.newest + 1)]
OF_4_4 = [ApiKey.API_VERSIONS, ApiKey.TXN_OFFSET_COMMIT, ApiKey.DELETE_GROUPS]
CURRENT = [api for api in ApiKey if api not in (*ZOOKEEPER_ERA, *OF_4_4)]

MESSAGES = "org.apache.kafka.common.message"
GROUPS = "org.apache.kafka.coordinator.group.generated"
SHARES = "org.apache.kafka.coordinator.share.generated"
TRANSACTIONS = "org.apache.kafka.coordinator.transaction.generated"
STORAGE = "org.apache.kafka.server.log.remote.metadata.storage.generated"

EXAMPLES = settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module")
def kafka_3() -> Iterator[JavaOracle]:
    with JavaOracle("kafka-3.9.1") as oracle:
        yield oracle


@pytest.fixture(scope="module")
def kafka_4() -> Iterator[JavaOracle]:
    with JavaOracle("kafka-4.3.0") as oracle:
        yield oracle


@pytest.fixture(scope="module")
def newest_kafka() -> Iterator[JavaOracle]:
    with JavaOracle("clients-4.4.0") as oracle:
        yield oracle


def agree(oracle: JavaOracle, java_class: str, codec: MessageCodec, table: StructMeta, data: st.DataObject) -> None:
    value = data.draw(values(table, codec.version))
    encoded = codec.encode(value)
    written, shown = oracle.ask(java_class, codec.version, encoded)
    assert written == encoded
    assert as_ours(shown, value) == as_shown(value, codec.version)
    assert codec.decode(encoded) == value


@pytest.mark.parametrize(("api", "version"), OLD_VERSIONS, ids=lambda part: getattr(part, "name", f"v{part}"))
@EXAMPLES
@given(data=st.data())
def test_zookeeper_era(kafka_3: JavaOracle, api: ApiKey, version: int, data: st.DataObject) -> None:
    agree(kafka_3, f"{MESSAGES}.{api.title}RequestData", api.request(version), api.request_table, data)
    agree(kafka_3, f"{MESSAGES}.{api.title}ResponseData", api.response(version), api.response_table, data)


@EXAMPLES
@given(data=st.data())
def test_the_oldest_header(kafka_3: JavaOracle, data: st.DataObject) -> None:
    value = data.draw(values(RequestHeader, 0))
    written, shown = kafka_3.ask(f"{MESSAGES}.RequestHeaderData", 0, REQUEST_HEADERS[0].encode(value))
    assert written == REQUEST_HEADERS[0].encode(value)
    assert isinstance(value, RequestHeader)
    assert shown == {
        "requestApiKey": value.api_key,
        "requestApiVersion": value.api_version,
        "correlationId": value.correlation_id,
    }


@pytest.mark.parametrize("api", CURRENT, ids=lambda api: api.name)
@settings(EXAMPLES, max_examples=2)
@given(data=st.data())
def test_the_newest_version(kafka_4: JavaOracle, api: ApiKey, data: st.DataObject) -> None:
    agree(kafka_4, f"{MESSAGES}.{api.title}RequestData", api.request(api.newest), api.request_table, data)
    agree(kafka_4, f"{MESSAGES}.{api.title}ResponseData", api.response(api.newest), api.response_table, data)


@pytest.mark.parametrize("api", OF_4_4, ids=lambda api: api.name)
@settings(EXAMPLES, max_examples=5)
@given(data=st.data())
def test_the_versions_of_kafka_4_4(newest_kafka: JavaOracle, api: ApiKey, data: st.DataObject) -> None:
    agree(newest_kafka, f"{MESSAGES}.{api.title}RequestData", api.request(api.newest), api.request_table, data)
    agree(newest_kafka, f"{MESSAGES}.{api.title}ResponseData", api.response(api.newest), api.response_table, data)


def tables(module: object) -> list[StructMeta]:
    return [table for table in vars(module).values() if isinstance(table, StructMeta) and table.within != (0, -1)]


STORED = [
    *((MESSAGES, table) for module in (consumer_protocol, control_records) for table in tables(module)),
    *(
        (GROUPS, table)
        for module in (offset_commit, group_metadata, consumer_group, share_group, streams_group)
        for table in tables(module)
    ),
    *((SHARES, table) for table in tables(share_state)),
    *((TRANSACTIONS, table) for table in tables(transaction_log)),
    *((STORAGE, table) for table in tables(producer_snapshot)),
]


@pytest.mark.parametrize(("package", "table"), STORED, ids=lambda part: getattr(part, "__name__", ""))
@EXAMPLES
@given(data=st.data())
def test_stored(kafka_4: JavaOracle, package: str, table: StructMeta, data: st.DataObject) -> None:
    for version in range(table.within[0], table.within[1] + 1):
        agree(kafka_4, f"{package}.{table.__name__}", storage.codec(table, version), table, data)
