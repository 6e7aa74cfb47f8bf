"""Every key, version and direction that kio has: our bytes are its bytes, its values are our values."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ixion.language.protocol import storage
from ixion.language.protocol.codec.message import MessageCodec
from ixion.language.protocol.codec.sink import joined
from ixion.language.protocol.envelope import REQUEST_HEADERS, RESPONSE_HEADERS
from ixion.language.protocol.headers import RequestHeader, ResponseHeader
from ixion.language.protocol.notation import Struct, StructMeta
from ixion.language.protocol.registry import ApiKey
from ixion.language.protocol.stored import consumer_protocol, control_records
from tests.protocol.kio_oracle import differences, kio_class, kio_decode, kio_encode
from tests.protocol.strategies import values

WITHOUT_KIO = {ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA, ApiKey.CONTROLLED_SHUTDOWN}
OF_4_4 = {(ApiKey.API_VERSIONS, 5), (ApiKey.TXN_OFFSET_COMMIT, 6), (ApiKey.DELETE_GROUPS, 3)}
VERSIONS = [
    (api, version)
    for api in ApiKey
    if api not in WITHOUT_KIO
    for version in range(api.oldest, api.newest + 1)
    if (api, version) not in OF_4_4
]

EXAMPLES = settings(
    max_examples=5,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def agree(codec: MessageCodec, table: StructMeta, theirs: object, data: st.DataObject) -> None:
    value = data.draw(values(table, codec.version))
    encoded = codec.encode(value)
    other = kio_decode(theirs, encoded)
    assert differences(value, other, codec.version) == []
    assert kio_encode(other) == encoded
    assert codec.decode(encoded) == value
    assert joined(codec.encode_parts(value)) == encoded


@pytest.mark.parametrize(("api", "version"), VERSIONS, ids=lambda part: getattr(part, "name", f"v{part}"))
@EXAMPLES
@given(data=st.data())
def test_requests(api: ApiKey, version: int, data: st.DataObject) -> None:
    theirs = kio_class(f"{api.name.lower()}.v{version}.request", f"{api.title}Request")
    agree(api.request(version), api.request_table, theirs, data)


@pytest.mark.parametrize(("api", "version"), VERSIONS, ids=lambda part: getattr(part, "name", f"v{part}"))
@EXAMPLES
@given(data=st.data())
def test_responses(api: ApiKey, version: int, data: st.DataObject) -> None:
    theirs = kio_class(f"{api.name.lower()}.v{version}.response", f"{api.title}Response")
    agree(api.response(version), api.response_table, theirs, data)


STORED = [
    ("consumer_protocol_subscription", consumer_protocol.ConsumerProtocolSubscription),
    ("consumer_protocol_assignment", consumer_protocol.ConsumerProtocolAssignment),
    ("control_record_type_schema", control_records.ControlRecordTypeSchema),
    ("end_txn_marker", control_records.EndTxnMarker),
    ("leader_change_message", control_records.LeaderChangeMessage),
]


@pytest.mark.parametrize(("module", "table"), STORED, ids=lambda part: getattr(part, "__name__", ""))
@EXAMPLES
@given(data=st.data())
def test_stored(module: str, table: type[Struct], data: st.DataObject) -> None:
    for version in range(table.within[0], table.within[1] + 1):
        agree(storage.codec(table, version), table, kio_class(f"{module}.v{version}.data", table.__name__), data)


HEADERS = [(RequestHeader, 1), (RequestHeader, 2), (ResponseHeader, 0), (ResponseHeader, 1)]


@pytest.mark.parametrize(("table", "version"), HEADERS)
@EXAMPLES
@given(data=st.data())
def test_headers(table: type[Struct], version: int, data: st.DataObject) -> None:
    module = "request_header" if table is RequestHeader else "response_header"
    codec = (REQUEST_HEADERS if table is RequestHeader else RESPONSE_HEADERS)[version]
    agree(codec, table, kio_class(f"{module}.v{version}.header", table.__name__), data)
