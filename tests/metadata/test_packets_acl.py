from __future__ import annotations

from ixion.broker.metadata.node import Create
from ixion.broker.metadata.zookeeper.jute import JuteReader
from ixion.broker.metadata.zookeeper.packets import create_body, multi_body

OPEN = [(31, "world", "anyone")]
OWN = (31, "auth", "")
READABLE = [OWN, (1, "world", "anyone")]


def acl_in(body: bytes) -> list[tuple[int, str, str]]:
    reader = JuteReader(body)
    reader.string()
    reader.buffer()
    return [(reader.read_int(), reader.string(), reader.string()) for _ in range(reader.read_int())]


def test_the_acls_of_kafka() -> None:
    """As in Kafka's ZkData: what is secret is not even read by others; /consumers is everybody's."""
    for path, acl in (
        ("/brokers/ids/1", READABLE),
        ("/config/topics/t", READABLE),
        ("/config/users/alice", [OWN]),
        ("/config/brokers/1", [OWN]),
        ("/delegation_token/tokens/x", [OWN]),
        ("/consumers", OPEN),
    ):
        assert acl_in(create_body(Create(path, b"x"), "/chroot", secure=True)) == acl
        assert acl_in(create_body(Create(path, b"x"), "/chroot")) == OPEN


def test_in_a_transaction_too() -> None:
    assert b"auth" in multi_body([Create("/config/users/a", b"")], "", secure=True)
    assert b"auth" not in multi_body([Create("/config/users/a", b"")], "")
