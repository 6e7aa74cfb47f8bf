"""A broker with an authorizer: `root` may do everything, other users only what a test allows them.

Use it to test which rights an API needs.
"""

from __future__ import annotations

from collections.abc import Mapping

from ixion.language.model.acl_names import Operation, PatternKind, Permission, ResourceKind
from ixion.language.protocol.messages.k17_sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ixion.language.protocol.messages.k30_create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from ixion.language.protocol.messages.k36_sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ixion.testing.broker import Broker
from tests.apis.asking import Asking

USERS = ("root", "alice", "bob")
JAAS = " ".join(f'user_{user}="{user}-secret"' for user in USERS)
SETTINGS = {
    "broker.id": "1",
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        f"org.apache.kafka.common.security.plain.PlainLoginModule required {JAAS};"
    ),
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:root",
    "group.initial.rebalance.delay.ms": "0",
}


def secured(more: Mapping[str, object] | None = None, **options: object) -> Broker:
    return Broker({**SETTINGS, **(more or {})}, **options)  # type: ignore[arg-type]


class AskingAs(Asking):
    """A connection that has authenticated as a user."""

    def __init__(self, bootstrap: str, user: str) -> None:
        super().__init__(bootstrap)
        self.ask(SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
        token = f"\0{user}\0{user}-secret".encode()
        answer = self.ask(SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse)
        assert answer.error_code == 0


def rule(
    user: str,
    operation: Operation,
    kind: ResourceKind,
    name: str,
    pattern: PatternKind = PatternKind.LITERAL,
    permission: Permission = Permission.ALLOW,
) -> AclCreation:
    return AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=pattern,
        principal=f"User:{user}",
        host="*",
        operation=operation,
        permission_type=permission,
    )


def allow(root: Asking, *rules: AclCreation) -> None:
    answer = root.ask(CreateAclsRequest(creations=rules), CreateAclsResponse)
    assert [each.error_code for each in answer.results] == [0] * len(rules)
