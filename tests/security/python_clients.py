"""Tries kafka-python and aiokafka: `python -m tests.security.python_clients`, with cases as JSON on standard input.

A process of its own, because kafka-python leaves sockets to the collector. Prints a line of JSON for each case: its
name, and "ok" or what the client said and logged. A case that must fail is tried until the client gives the reason.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import sys
import time
from typing import Any

PATIENCE_S = 60.0


def settings_of(case: dict[str, Any]) -> dict[str, Any]:
    """What both clients take."""
    found: dict[str, Any] = dict(case["settings"])
    if "SSL" in found["security_protocol"]:
        found["ssl_context"] = ssl.create_default_context(cafile=case["trusted"])
        found["ssl_context"].check_hostname = not case["any_host"]
        if case["own"]:
            found["ssl_context"].load_cert_chain(case["own"])
    return found


def by_kafka_python(case: dict[str, Any]) -> None:
    from kafka import KafkaProducer
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Tokens(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return str(case["token"])

    more = {"sasl_oauth_token_provider": Tokens()} if case["token"] else {}
    patience_ms = 500 if case["reason"] else 60_000
    producer = KafkaProducer(**settings_of(case), **more, bootstrap_timeout_ms=patience_ms)
    try:
        producer.send("t", b"x").get(60)
    finally:
        producer.close()


def by_aiokafka(case: dict[str, Any]) -> None:
    from aiokafka import AIOKafkaProducer
    from aiokafka.abc import AbstractTokenProvider

    class Tokens(AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return str(case["token"])

    async def send() -> None:
        more = {"sasl_oauth_token_provider": Tokens()} if case["token"] else {}
        producer = AIOKafkaProducer(**settings_of(case), **more)
        try:
            await producer.start()
            await producer.send_and_wait("t", b"x")
        finally:
            await producer.stop()

    asyncio.run(asyncio.wait_for(send(), PATIENCE_S))


class Said(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def tried(case: dict[str, Any], said: Said) -> str:
    client = by_kafka_python if case["client"] == "kafka-python" else by_aiokafka
    said.lines.clear()
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            client(case)
        except Exception as error:
            said.lines.append(repr(error))
        else:
            return "ok"
        everything = " ".join(said.lines)
        if not case["reason"] or case["reason"] in everything or time.monotonic() > deadline:
            return everything


def main() -> None:
    said = Said()
    logging.getLogger().addHandler(said)
    logging.getLogger("asyncio").addFilter(lambda _: False)
    for case in json.load(sys.stdin):
        print(json.dumps([case["name"], tried(case, said)]), flush=True)


if __name__ == "__main__":
    main()
