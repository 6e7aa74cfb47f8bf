"""Delegation tokens: made, used through SCRAM, renewed and expired, by the principals that may do so."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ixion.broker.metadata.content import CorruptNodeError
from ixion.broker.metadata.token_node import decode_token, encode_token, path_of
from ixion.broker.security.tokens import Tokens
from ixion.clients import Admin
from ixion.clients.admin.tokens import DelegationToken
from ixion.clients.faults import AuthenticationError
from ixion.language.model.acl_names import Operation, ResourceKind
from ixion.language.model.delegation_token import Token
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.sasl.scram import ScramCredential, new_credential
from ixion.testing import Broker
from tests.apis.guards.secured import AskingAs, allow, rule, secured

SECRET = {"delegation.token.secret.key": "the secret of the cluster", "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with secured(SECRET) as running:
        yield running


def admin_as(broker: Broker, user: str) -> Admin:
    return Admin(
        broker.bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username=user,
        sasl_password=f"{user}-secret",
    )


def admin_by(broker: Broker, token: DelegationToken, **other: Any) -> Admin:
    return Admin(
        broker.bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_username=token.token_id,
        sasl_password=base64.b64encode(token.hmac).decode(),
        **{"sasl_tokenauth": "true", **other},
    )


def change(broker: Broker, token: DelegationToken, **fields: Any) -> None:
    """Give a token other times or another owner, in the tree and in the broker's memory."""

    async def work(real: Any) -> None:
        tokens = real.parts.tokens
        changed = tokens.get(token.token_id)._replace(**fields)
        await real.parts.session.set(path_of(token.token_id), encode_token(changed))
        tokens.put(changed)

    broker.call(work)


def code_of(work: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        work()
    return caught.value.code


def test_a_token_lets_its_owner_in(broker: Broker) -> None:
    with admin_as(broker, "alice") as alice, admin_as(broker, "root") as root:
        token = alice.create_delegation_token(renewers=["User:bob"])
        assert (token.owner, token.renewers) == ("User:alice", ("User:bob",))
        assert token.max_ms - token.issued_ms == 7 * 24 * 3_600_000
        assert token.expires_ms - token.issued_ms == 24 * 3_600_000
        assert "hmac" not in repr(token)
        with admin_by(broker, token) as job:
            # It is alice, with alice's rights only.
            assert job.list_topics() == alice.list_topics()
            assert code_of(lambda: job.describe_client_quotas()) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            for work in (
                job.create_delegation_token,
                job.describe_delegation_tokens,
                lambda: job.renew_delegation_token(token.hmac),
                lambda: job.expire_delegation_token(token.hmac),
            ):
                assert code_of(work) is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert [each.token_id for each in alice.describe_delegation_tokens()] == [token.token_id]
        assert [each.hmac for each in root.describe_delegation_tokens(["User:alice"])] == [token.hmac]
        assert root.describe_delegation_tokens(["User:root"]) == []
        alice.expire_delegation_token(token.hmac)
        with pytest.raises(AuthenticationError, match="wrong name or password"), admin_by(broker, token) as job:
            job.list_topics()


def test_the_password_of_a_token_is_salted_on_another_thread_and_once(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    salted_on: list[int] = []
    may_end = threading.Event()

    def salt(mechanism: str, password: str) -> ScramCredential:
        salted_on.append(threading.get_ident())
        assert may_end.wait(60)
        return new_credential(mechanism, password)

    async def loop_thread(_: Any) -> int:
        return threading.get_ident()

    async def waiting(real: Any) -> int:
        every = [each for one in real.parts.server._processors() for each in one.connections.values()]
        return sum(each.busy and each.gate is not None and not each.gate.is_open for each in every)

    monkeypatch.setattr("ixion.language.sasl.scram.new_credential", salt)
    with admin_as(broker, "alice") as alice:
        token = alice.create_delegation_token()
        listed: list[int] = []

        def work() -> None:
            with admin_by(broker, token) as job:
                listed.append(len(job.list_topics()))

        jobs = [threading.Thread(target=work) for _ in range(3)]
        for job in jobs:
            job.start()
        deadline = time.monotonic() + 60
        while broker.call(waiting) < len(jobs):  # the broker serves others meanwhile
            assert time.monotonic() < deadline
            time.sleep(0.01)
        may_end.set()
        for job in jobs:
            job.join(60)
        assert len(listed) == len(jobs)
        assert len(salted_on) == 1
        assert salted_on[0] != broker.call(loop_thread)
        alice.expire_delegation_token(token.hmac)


def test_a_token_that_is_removed_while_it_is_salted_leaves_nothing() -> None:
    loop = asyncio.new_event_loop()
    made: list[asyncio.Future[ScramCredential]] = []

    def run(_: Any) -> asyncio.Future[ScramCredential]:
        made.append(loop.create_future())
        return made[-1]

    async def turn() -> None:
        await asyncio.sleep(0)

    tokens = Tokens("secret", lambda: 0, run)
    for name in ("a", "b"):
        times = {"issued_ms": 0, "max_ms": 10, "expires_ms": 10}
        tokens.put(Token(token_id=name, owner="User:u", requester="User:u", renewers=(), **times))
        assert tokens.prepare("SCRAM-SHA-256", name) is tokens.prepare("SCRAM-SHA-256", name)
    assert len(made) == 2
    assert tokens.prepare("SCRAM-SHA-256", "c") is None
    tokens.remove("a")
    for each in made:
        each.set_result(new_credential("SCRAM-SHA-256", "p"))
    loop.run_until_complete(turn())
    loop.close()
    assert list(tokens._credentials) == [("b", "SCRAM-SHA-256")]
    assert tokens._salting == {}
    assert tokens.prepare("SCRAM-SHA-256", "b") is None
    assert tokens.login("SCRAM-SHA-256", "b") is not None
    assert tokens.login("SCRAM-SHA-256", "a") is None


def test_a_token_is_no_user_and_a_user_is_no_token(broker: Broker) -> None:
    with admin_as(broker, "alice") as alice:
        token = alice.create_delegation_token()
        wrong = token._replace(hmac=bytes(64))
        for login in (token, wrong, token._replace(token_id="alice")):
            as_token = "false" if login is token else "true"
            with pytest.raises(AuthenticationError), admin_by(broker, login, sasl_tokenauth=as_token) as job:
                job.list_topics()
        alice.expire_delegation_token(token.hmac)


def test_which_users_may_renew_and_expire(broker: Broker) -> None:
    with admin_as(broker, "alice") as alice, admin_as(broker, "bob") as bob, admin_as(broker, "root") as root:
        token = alice.create_delegation_token(max_lifetime_ms=3_600_000)
        assert token.expires_ms == token.max_ms == token.issued_ms + 3_600_000
        assert code_of(lambda: bob.renew_delegation_token(token.hmac)) is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        assert code_of(lambda: root.expire_delegation_token(token.hmac)) is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        assert code_of(lambda: alice.renew_delegation_token(b"none")) is ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        assert bob.describe_delegation_tokens() == []
        assert alice.renew_delegation_token(token.hmac) == token.max_ms  # and no longer
        assert alice.expire_delegation_token(token.hmac, period_ms=60_000) < token.max_ms
        change(broker, token, expires_ms=1)
        assert code_of(lambda: alice.renew_delegation_token(token.hmac)) is ErrorCode.DELEGATION_TOKEN_EXPIRED
        with pytest.raises(AuthenticationError), admin_by(broker, token) as job:
            job.list_topics()


def test_a_token_for_another_owner_needs_a_right(broker: Broker) -> None:
    with admin_as(broker, "bob") as bob, admin_as(broker, "root") as root, admin_as(broker, "alice") as alice:
        refused = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert code_of(lambda: bob.create_delegation_token(owner="User:alice")) is refused
        with AskingAs(broker.bootstrap, "root") as asking:
            allow(asking, rule("bob", Operation.CREATE_TOKENS, ResourceKind.USER, "User:alice"))
        token = bob.create_delegation_token(owner="User:alice")
        assert token.owner == "User:alice"
        assert token.token_id in {each.token_id for each in alice.describe_delegation_tokens()}
        assert token.token_id in {each.token_id for each in root.describe_delegation_tokens(["User:bob"])}
        assert code_of(lambda: bob.create_delegation_token(renewers=["Group:x"])) is ErrorCode.INVALID_PRINCIPAL_TYPE
        bob.expire_delegation_token(token.hmac)


@pytest.mark.parametrize("owner", ["X:root", "user:root", "Group:root"])
def test_an_owner_of_another_type_is_refused(broker: Broker, owner: str) -> None:
    """A login by such a token would be one of User:root."""
    with admin_as(broker, "root") as root:
        code = code_of(lambda: root.create_delegation_token(owner=owner))
    assert code is ErrorCode.INVALID_PRINCIPAL_TYPE


def test_a_stored_token_of_another_type_lets_nobody_in() -> None:
    tokens = Tokens("secret", lambda: 0)
    times = {"issued_ms": 0, "expires_ms": 10, "max_ms": 10}
    credential = new_credential("SCRAM-SHA-256", "p")
    for name, owner in (("a", "User:u"), ("b", "X:u")):
        tokens.put(Token(token_id=name, owner=owner, requester=owner, renewers=(), **times))
        tokens._credentials[name, "SCRAM-SHA-256"] = credential
    login = tokens.login("SCRAM-SHA-256", "a")
    assert login is not None
    assert login.owner == "u"
    assert tokens.login("SCRAM-SHA-256", "b") is None


def test_a_stored_token_of_another_type_cannot_be_renewed_but_removed(broker: Broker) -> None:
    with admin_as(broker, "alice") as alice:
        token = alice.create_delegation_token(renewers=["User:alice"])
        change(broker, token, owner="X:root")
        assert code_of(lambda: alice.renew_delegation_token(token.hmac)) is ErrorCode.INVALID_PRINCIPAL_TYPE
        with pytest.raises(AuthenticationError), admin_by(broker, token) as job:
            job.list_topics()
        alice.expire_delegation_token(token.hmac)
        assert token.token_id not in {each.token_id for each in alice.describe_delegation_tokens()}


def test_the_names_of_a_token_are_bounded(broker: Broker) -> None:
    with admin_as(broker, "root") as root:
        assert root.create_delegation_token(renewers=[f"User:{n}" for n in range(300)]).owner == "User:root"
        code = code_of(lambda: root.create_delegation_token(renewers=[f"User:{n}{'x' * 900}" for n in range(5)]))
    assert code is ErrorCode.INVALID_REQUEST


def test_a_connection_ends_with_its_token(broker: Broker) -> None:
    with admin_as(broker, "alice") as alice:
        token = alice.create_delegation_token()
        change(broker, token, expires_ms=token.issued_ms + 3_600_000)

        async def lifetimes(real: Any) -> list[int]:
            every = [each for one in real.parts.server._processors() for each in one.connections.values()]
            gates = [each.gate for each in every if each.gate is not None and each.gate.by_token]
            return [gate._expires_ms - gate._monotonic_ms() for gate in gates]

        with admin_by(broker, token) as job:
            job.list_topics()
            left_ms = broker.call(lifetimes)
            assert left_ms
            assert all(0 < each <= 3_600_000 for each in left_ms)
        alice.expire_delegation_token(token.hmac)


def test_expired_tokens_are_removed(broker: Broker) -> None:
    with admin_as(broker, "alice") as alice, admin_as(broker, "root") as root:
        token, other = alice.create_delegation_token(), alice.create_delegation_token()
        change(broker, token, expires_ms=1)

        async def look(real: Any) -> None:
            await real.parts.token_manager.remove_expired()

        broker.call(look)
        left = {each.token_id for each in root.describe_delegation_tokens()}
        assert token.token_id not in left
        assert other.token_id in left


def test_tokens_survive_a_restart(tmp_path: Path) -> None:
    with secured(SECRET, data=tmp_path) as broker, admin_as(broker, "alice") as alice:
        token, gone = alice.create_delegation_token(renewers=["User:b ob"]), alice.create_delegation_token()
        alice.expire_delegation_token(gone.hmac)
    with secured(SECRET, data=tmp_path) as broker, admin_as(broker, "alice") as alice:
        assert alice.describe_delegation_tokens() == [token]
        with admin_by(broker, token) as job:
            job.list_topics()
    with (
        secured(SECRET | {"delegation.token.secret.key": "other"}, data=tmp_path) as broker,
        pytest.raises(AuthenticationError),
        admin_by(broker, token) as job,
    ):
        job.list_topics()


def test_without_a_secret_there_are_no_tokens() -> None:
    with secured() as broker, admin_as(broker, "alice") as alice:
        for work in (alice.create_delegation_token, alice.describe_delegation_tokens):
            assert code_of(work) is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def test_a_token_in_the_tree_is_kafkas() -> None:
    token = Token(
        token_id="abc",
        owner="User:al ice",
        requester="User:bob",
        renewers=("User:CN=c,O=d",),
        issued_ms=1,
        max_ms=3,
        expires_ms=2,
    )
    data = encode_token(token)
    assert json.loads(data) == {
        "version": 3,
        "owner": "User%3Aal%20ice",
        "tokenRequester": "User%3Abob",
        "renewers": ["User%3ACN%3Dc%2CO%3Dd"],
        "issueTimestamp": 1,
        "maxTimestamp": 3,
        "expirationTimestamp": 2,
        "tokenId": "abc",
    }
    assert decode_token("abc", data) == token
    older = json.loads(data) | {"version": 2}
    del older["tokenRequester"]
    assert decode_token("abc", json.dumps(older).encode()).requester == token.owner
    for broken in (b"", b"{}", data.replace(b"3", b"9", 1)):
        with pytest.raises(CorruptNodeError):
            decode_token("abc", broken)


def test_the_hmac_is_kafkas() -> None:
    """HmacSHA512 of the id under the secret, as `openssl dgst -sha512 -hmac` has it."""
    tokens = Tokens("secret", lambda: 0)
    assert tokens.hmac_of("tokenId").hex().startswith("f712b7992c63fdb8")
    assert len(tokens.hmac_of("tokenId")) == 64
