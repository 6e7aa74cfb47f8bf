"""The memory that stays when clients have sent their worst requests and have gone, in a broker of this process.

A round is one connection for each request: connect, log in or not, send, take the answer, disconnect. The same rounds
run twice. After the first time every cache and table knows the names in them; what the second time adds to memory is
kept for connections that are gone. Counted are the bytes of Python objects (tracemalloc), not those of the process:
malloc keeps freed memory in pieces, and grows a little for a long time without a leak.
"""

from __future__ import annotations

import gc
import socket
import struct
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from ixion.broker.apis.served import SERVED
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.protocol.messages.k17_sasl_handshake import SaslHandshakeRequest
from ixion.language.protocol.messages.k36_sasl_authenticate import SaslAuthenticateRequest
from ixion.language.protocol.messages.k49_alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.hostile.amplify import worst_of
from tests.hostile.genes import TOPICS, WIDE, shaped
from tests.hostile.inputs import asked
from tests.hostile.witness import take

PASSWORDS: Final = {"root": "r", "alice": "a", "mallory": "m"}  # root may do everything
USERS: Final = ("", "root", "alice")  # "": does not log in; alice may do nothing
BOUND: Final = 2_000  # bytes that may stay of one connection
KEPT: Final = {ApiKey.JOIN_GROUP: 2_000}  # a member id that waits for its member, bounded by docs/limits.md


class Left(NamedTuple):
    """Bytes that one connection left behind, and that it might."""

    apis: str
    user: str
    bytes: int
    bound: int


def settings() -> dict[str, str]:
    users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    jaas = f'{module} username="root" password="r" {users};'
    return {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas,
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:root",
        "auto.create.topics.enable": "false",
        "connection.failed.authentication.delay.ms": "0",
    }


@contextmanager
def guarded_broker(quota: bool) -> Iterator[Broker]:
    with Broker(settings(), memory=True) as broker:
        for number in range(TOPICS):
            broker.create_topic(f"t{number}")
        broker.create_topic(WIDE, 50)
        if quota:
            with logged_in(broker.bootstrap, "root") as client:
                set_quota(client)
        yield broker


def set_quota(client: socket.socket) -> None:
    """High enough that nobody waits, but every client id is metered."""
    entity = (EntityData(entity_type="client-id", entity_name=None),)
    ops = tuple(
        OpData(key=key, value=1e9, remove=False)
        for key in ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
    )
    entry = EntryData(entity=entity, ops=ops)
    request = AlterClientQuotasRequest(entries=(entry,), validate_only=False)
    client.sendall(asked(int(ApiKey.ALTER_CLIENT_QUOTAS), 1, request))
    assert take(client) is not None


@contextmanager
def logged_in(bootstrap: str, user: str) -> Iterator[socket.socket]:
    host, _, port = bootstrap.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as client:
        if user:
            client.sendall(asked(int(ApiKey.SASL_HANDSHAKE), 1, SaslHandshakeRequest(mechanism="PLAIN")))
            assert take(client) is not None
            proof = f"\0{user}\0{PASSWORDS[user]}".encode()
            client.sendall(asked(int(ApiKey.SASL_AUTHENTICATE), 2, SaslAuthenticateRequest(auth_bytes=proof)))
            assert take(client) is not None
        yield client


def send(bootstrap: str, user: str, request: bytes, patience_s: float = 0.3) -> None:
    """Some requests are not answered, or not before others come; then the client leaves."""
    with logged_in(bootstrap, user) as client:
        try:
            client.sendall(request)
            client.settimeout(patience_s)
            take(client)
        except (ConnectionError, TimeoutError, struct.error):
            return


def settle(broker: Broker) -> None:
    """Return when the broker has no connection any more."""
    until = time.monotonic() + 30
    while broker.call(connections) and time.monotonic() < until:
        time.sleep(0.002)
    gc.collect()


async def connections(broker: RealBroker) -> int:
    return sum(1 for _ in broker.parts.server._connections())


def left_by(broker: Broker, apis: Sequence[ApiKey], user: str, *, size: int = 1_000, warm: int, rounds: int) -> Left:
    """By the worst requests of these APIs together. Every round has a client id of its own."""
    ids = [bytes(15) + b"\1"]
    genes = [(api, gene) for api in apis for gene in worst_of(api, size)]
    requests = [
        [shaped(api, gene, size, ids, f"client-{number}") for api, gene in genes] for number in range(max(warm, rounds))
    ]

    def run(count: int) -> int:
        for each in requests[:count]:
            for request in each:
                send(broker.bootstrap, user, request)
        settle(broker)
        return tracemalloc.get_traced_memory()[0]

    run(warm)
    before = run(rounds)
    after = run(rounds)
    names = ", ".join(api.title for api in apis)
    return Left(names, user or "nobody", (after - before) // (rounds * len(genes)), max(map(bound_of, apis)))


def bound_of(api: ApiKey) -> int:
    return BOUND + KEPT.get(api, 0)


def all_left(rounds: int = 5) -> Iterator[tuple[bool, Left]]:
    """Of every API, before and after a login, with and without rights, with quotas and without."""
    for quota in (False, True):
        with guarded_broker(quota) as broker:
            tracemalloc.start(1)
            try:
                for api in SERVED:
                    for user in USERS:
                        left = left_by(broker, [api], user, warm=2, rounds=rounds)
                        if left.bytes > left.bound:  # something that is kept once, or a leak: more rounds tell
                            left = left_by(broker, [api], user, warm=2, rounds=rounds * 8)
                        yield quota, left
            finally:
                tracemalloc.stop()
