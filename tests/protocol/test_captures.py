"""What real clients said is understood, and said again byte for byte."""

from __future__ import annotations

import pytest

from ixion.language.protocol.codec.sink import joined
from ixion.language.protocol.envelope import decode_request, decode_response, encode_request, encode_response_as
from tests.protocol.captures import Capture, captures


def test_all_clients_are_there() -> None:
    assert {capture.client for capture in captures()} == {"aiokafka", "java", "kafka_python", "librdkafka"}
    assert len({(capture.key, capture.version) for capture in captures()}) > 50


@pytest.mark.parametrize("capture", captures(), ids=lambda capture: "-".join(map(str, capture[:4])))
def test_said_again_byte_for_byte(capture: Capture) -> None:
    if capture.direction == "request":
        header, body = decode_request(capture.frame)
        assert (header.api_key, header.api_version) == (capture.key, capture.version)
        again = b"".join(encode_request(header, body))
    else:
        answer, body = decode_response(capture.key, capture.version, capture.frame)
        again = joined(encode_response_as(capture.key, capture.version, answer.correlation_id, body))
    assert again.hex() == capture.frame.hex()
