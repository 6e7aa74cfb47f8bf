"""The lists we keep by hand (API keys, versions, headers, error codes) are Kafka's lists."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from devtools.jvm import compile_java, run_java
from devtools.parts import need
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.registry import ApiKey

pytestmark = pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted", reason="the same in both runs; done in the compiled one"
)

SOURCE = Path(__file__).parent / "java" / "KafkaFacts.java"
ZOOKEEPER_ERA = range(4, 8)
OF_4_4 = (ApiKey.API_VERSIONS, ApiKey.TXN_OFFSET_COMMIT, ApiKey.DELETE_GROUPS)
KAFKA_3, KAFKA_4, NEWEST = "kafka-3.9.1", "kafka-4.3.0", "clients-4.4.0"  # of the newest there are clients only


@cache
def said(jars: str) -> list[str]:
    path = need(jars)
    return run_java("KafkaFacts", classpath=f"{compile_java(SOURCE, path)}:{path}").splitlines()


@cache
def facts(jars: str, kind: str) -> set[tuple[str, ...]]:
    return {tuple(line.split()[1:]) for line in said(jars) if line.startswith(kind)}


@pytest.mark.parametrize("api", ApiKey, ids=lambda api: api.name)
def test_versions_and_headers(api: ApiKey) -> None:
    kafka = facts(KAFKA_3 if api in ZOOKEEPER_ERA else NEWEST if api in OF_4_4 else KAFKA_4, "api")
    ours = {
        (
            str(int(api)),
            api.title,
            str(version),
            str(api.request_header_version(version)),
            str(api.response_header_version(version)),
        )
        for version in range(api.oldest, api.newest + 1)
    }
    assert ours == {fact for fact in kafka if fact[0] == str(int(api))}


def test_error_codes() -> None:
    ours = {
        (str(int(code)), code.name, str(code.retriable).lower(), str(code.stale_metadata).lower()) for code in ErrorCode
    }
    assert ours == facts(KAFKA_4, "error")
