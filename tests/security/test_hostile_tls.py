"""What strangers send to a TLS listener: garbage, old versions, renegotiation, half of a handshake."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from devtools import parts
from ixion.broker.network import Listener
from ixion.broker.security.tls import context_of
from ixion.clients import Admin
from ixion.config.broker import BrokerConfig
from tests.crowd.half_open import hello
from tests.network.harness import on_loop, request_bytes, running
from tests.security.certificates import Authority
from tests.security.secured import Secured

HALF_OPEN = 300  # ten thousand of them: tests/crowd/half_open.py


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    made = Secured(tmp_path_factory.mktemp("certificates"))
    with made.broker:
        yield made


def place(secured: Secured) -> tuple[str, int]:
    host, _, port = secured.address("SSL").rpartition(":")
    return host, int(port)


def is_served(secured: Secured) -> bool:
    with Admin(
        secured.address("SSL"), security_protocol="SSL", ssl_truststore_location=str(secured.authority.certificate)
    ) as admin:
        return bool(admin.describe_cluster().cluster_id)


def ends(client: socket.socket) -> bool:
    """Whether the broker ends the connection; waits until it does. What it sends before is at most an alert."""
    received = b""
    try:
        while chunk := client.recv(65536):
            received += chunk
    except ConnectionError:
        pass
    return len(received) < 100


def test_garbage_ends_the_connection(secured: Secured) -> None:
    chance = random.Random(20)
    first = hello()
    for message in (
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        request_bytes(1),  # Kafka without TLS
        b"\x16\x03\x01\xff\xff" + b"\x00" * 100,  # a record larger than TLS allows
        b"\x15\x03\x01\x00\x02\x02\x28",  # an alert instead of a greeting
        first[:5] + bytes(len(first) - 5),
        *(chance.randbytes(chance.randrange(100, 5_000)) for _ in range(20)),
        *(bytes([*first[:at], first[at] ^ 0xFF, *first[at + 1 :]]) for at in (0, 1, 5, 6)),
    ):
        with socket.create_connection(place(secured), timeout=60) as client:
            client.sendall(message)
            client.shutdown(socket.SHUT_WR)
            assert ends(client), message[:20]
    assert is_served(secured)


def test_old_versions_are_refused(secured: Secured) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with socket.create_connection(place(secured), timeout=60) as plain, pytest.raises((ssl.SSLError, ConnectionError)):
        context.wrap_socket(plain)


def test_renegotiation_is_refused(secured: Secured) -> None:
    """`R` makes openssl's client ask for a new handshake on a connection of TLS 1.2."""
    openssl = parts.need("openssl")
    host, port = place(secured)
    command = [
        openssl,
        "s_client",
        "-connect",
        f"{host}:{port}",
        "-tls1_2",
        "-CAfile",
        str(secured.authority.certificate),
    ]
    client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        assert client.stdin is not None
        assert client.stdout is not None
        said = b""
        while b"Verify return code" not in said:
            line = client.stdout.readline()
            assert line, said
            said += line
        client.stdin.write(b"R\n")
        client.stdin.flush()
        while b"no renegotiation" not in said:
            line = client.stdout.readline()
            assert line, said
            said += line
    finally:
        client.kill()
        client.communicate()
    assert is_served(secured)


def test_hundreds_of_half_open_handshakes_keep_no_client_out(secured: Secured) -> None:
    async def count(real: Any) -> tuple[int, int]:
        server = real.parts.server
        return sum(len(each.handshaking) for each in server._processors()), server.snapshot().connections["SSL"]

    first = hello()
    with ExitStack() as stack:
        for number in range(HALF_OPEN):
            client = stack.enter_context(socket.create_connection(place(secured), timeout=60))
            client.sendall(first[: number % len(first)])  # none of them is whole
        deadline = time.monotonic() + 60
        while secured.broker.call(count)[0] < HALF_OPEN // 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        handshaking, connections = secured.broker.call(count)
        assert handshaking <= connections <= HALF_OPEN + 20
        assert is_served(secured)
    deadline = time.monotonic() + 60
    while secured.broker.call(count)[0] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert secured.broker.call(count)[0] == 0  # each costs one slot, and gives it back


def test_a_connection_may_come_one_byte_at_a_time(secured: Secured) -> None:
    context = ssl.create_default_context(cafile=str(secured.authority.certificate))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with socket.create_connection(place(secured), timeout=60) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def until_done(act: Any) -> Any:
            while True:
                try:
                    found = act()
                except ssl.SSLWantReadError:
                    found = None
                for byte in outgoing.read():
                    plain.sendall(bytes([byte]))
                if found is not None:
                    return found
                incoming.write(plain.recv(65536))

        def shake_hands() -> bool:
            client.do_handshake()
            return True

        until_done(shake_hands)
        client.write(request_bytes(9))
        answer = until_done(lambda: client.read(65536))
        assert answer[4:8] == (9).to_bytes(4, "big")


@on_loop
async def test_a_refused_client_gets_an_alert() -> None:
    """With uvloop and with asyncio, neither of which sends it."""
    with tempfile.TemporaryDirectory() as folder:
        authority = Authority(Path(folder))
        settings = {
            "ssl.keystore.location": str(authority.sign("broker", "/CN=broker")),
            "ssl.truststore.location": str(authority.certificate),
            "ssl.client.auth": "required",
        }
        served = context_of(BrokerConfig(settings), "SSL")
        listener = Listener(name="SSL", port=0, tls=lambda: served)

        def say(port: int, version: ssl.TLSVersion) -> str:
            context = ssl.create_default_context(cafile=str(authority.certificate))
            context.minimum_version = context.maximum_version = version
            with (
                socket.create_connection(("127.0.0.1", port), timeout=60) as plain,
                pytest.raises(ssl.SSLError) as refused,
                context.wrap_socket(plain, server_hostname="127.0.0.1") as client,
            ):
                client.recv(1)
            return refused.value.reason or ""

        async with running(listeners=(listener,)) as run:
            for version, alert in (
                (ssl.TLSVersion.TLSv1_2, "SSLV3_ALERT_HANDSHAKE_FAILURE"),
                (ssl.TLSVersion.TLSv1_3, "TLSV13_ALERT_CERTIFICATE_REQUIRED"),
            ):
                assert await asyncio.to_thread(say, run.server.port("SSL"), version) == alert
            await run.until(lambda: run.closed("handshake") == 2)
