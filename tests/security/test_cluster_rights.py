"""In a cluster of three, users, tokens, rules and quotas that one broker has taken hold on the others, too."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import Any

from ixion.clients import Admin
from ixion.clients.admin.users import ScramDeletion, ScramUpsertion
from ixion.clients.faults import AuthenticationError
from ixion.language.model.acl_binding import Binding, Entry, Filter, ResourcePattern
from ixion.language.model.acl_names import Operation, PatternKind, Permission, ResourceKind
from ixion.testing import Cluster

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN} user_root="r-secret" user_bob="b-secret";',
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:root;User:ANONYMOUS",
    "delegation.token.secret.key": "the secret of the cluster",
    "connection.failed.authentication.delay.ms": "0",
}


def admin_at(cluster: Cluster, broker: int, mechanism: str, user: str, password: str, **other: Any) -> Admin:
    real = dict(cluster._reals())[broker]
    return Admin(
        f"127.0.0.1:{real.parts.server.port('SASL_PLAINTEXT')}",
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_username=user,
        sasl_password=password,
        **other,
    )


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def lets_in(make: Callable[[], Admin]) -> bool:
    try:
        with make() as admin:
            admin.list_topics()
    except AuthenticationError:
        return False
    return True


def test_every_broker_learns_of_it() -> None:
    rule = Binding(
        ResourcePattern(ResourceKind.TOPIC, "or", PatternKind.PREFIXED),
        Entry("User:bob", "*", Operation.READ, Permission.ALLOW),
    )
    with Cluster(3, SETTINGS) as cluster:
        cluster.create_topic("orders")

        def root(broker: int) -> Admin:
            return admin_at(cluster, broker, "PLAIN", "root", "r-secret")

        def seen_by_bob(broker: int) -> bool:
            with admin_at(cluster, broker, "PLAIN", "bob", "b-secret") as bob:
                return bool(bob.list_topics())

        assert not any(map(seen_by_bob, (1, 2, 3)))
        with root(1) as admin:
            admin.create_acls([rule]).check()
        for broker in (1, 2, 3):
            until(lambda at=broker: seen_by_bob(at))  # type: ignore[misc]
        with root(2) as admin:
            admin.delete_acls([Filter(ResourceKind.TOPIC)]).check()
        for broker in (1, 2, 3):
            until(lambda at=broker: not seen_by_bob(at))  # type: ignore[misc]

        def as_sue(broker: int) -> bool:
            return lets_in(lambda: admin_at(cluster, broker, "SCRAM-SHA-256", "s.u e", "s-secret"))

        with root(3) as admin:
            admin.alter_user_scram_credentials([ScramUpsertion("s.u e", "s-secret", "SCRAM-SHA-256")]).check()
        for broker in (1, 2, 3):
            until(lambda at=broker: as_sue(at))  # type: ignore[misc]
        with admin_at(cluster, 2, "SCRAM-SHA-256", "s.u e", "s-secret") as sue:
            token = sue.create_delegation_token()

        def by_token(broker: int) -> bool:
            password = base64.b64encode(token.hmac).decode()
            login = ("SCRAM-SHA-256", token.token_id, password)
            return lets_in(lambda: admin_at(cluster, broker, *login, sasl_tokenauth="true"))

        for broker in (1, 2, 3):
            until(lambda at=broker: by_token(at))  # type: ignore[misc]
        with admin_at(cluster, 1, "SCRAM-SHA-256", "s.u e", "s-secret") as sue:
            sue.expire_delegation_token(token.hmac)
        with root(1) as admin:
            admin.alter_user_scram_credentials([ScramDeletion("s.u e", "SCRAM-SHA-256")]).check()
        for broker in (1, 2, 3):
            until(lambda at=broker: not by_token(at) and not as_sue(at))  # type: ignore[misc]
