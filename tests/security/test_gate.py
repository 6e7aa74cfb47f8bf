"""Which requests pass the gate of a SASL listener, in every order a client can think of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ixion.broker.security.gate import API_VERSIONS, AUTHENTICATE, HANDSHAKE, Gate
from ixion.broker.security.principal import ANONYMOUS
from ixion.language.model.errors import ErrorCode
from ixion.language.sasl.plain import PlainExchange, plain_message

METADATA = 3
USERS = {"alice": "a", "bob": "b"}


class Door:
    def __init__(self, lifetime_ms: int = 0) -> None:
        self.now_ms = 0
        exchanges = {"PLAIN": lambda: PlainExchange(USERS), "OTHER": lambda: PlainExchange(USERS)}
        self.gate = Gate(exchanges, lifetime_ms, lambda: self.now_ms)

    def log_in(self, name: str = "alice", password: str = "a") -> ErrorCode:
        assert self.gate.choose("PLAIN") == ErrorCode.NONE
        return self.gate.authenticate(plain_message(name, password)).code


def test_nothing_passes_before_the_client_is_known() -> None:
    door = Door()
    assert [door.gate.admits(key) for key in (API_VERSIONS, HANDSHAKE, AUTHENTICATE, METADATA)] == [True] * 3 + [False]
    assert door.gate.choose("PLAIN") == ErrorCode.NONE
    assert not door.gate.admits(METADATA)
    assert door.gate.authenticate(plain_message("alice", "a")).code == ErrorCode.NONE
    assert door.gate.admits(METADATA)
    assert door.gate.principal == "User:alice"


def test_a_wrong_password_closes_the_gate_for_good() -> None:
    door = Door()
    door.gate.choose("PLAIN")
    answer = door.gate.authenticate(plain_message("alice", "x"))
    assert (answer.code, answer.ends) == (ErrorCode.SASL_AUTHENTICATION_FAILED, True)
    assert answer.message == "authentication by PLAIN failed: wrong name or password"
    assert not door.gate.admits(METADATA)


def test_mechanisms_and_orders_that_are_not_there() -> None:
    door = Door()
    assert door.gate.choose("GSSAPI") == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert door.gate.authenticate(b"").code == ErrorCode.ILLEGAL_SASL_STATE
    assert door.gate.choose("PLAIN") == ErrorCode.NONE
    assert door.gate.choose("PLAIN") == ErrorCode.ILLEGAL_SASL_STATE


def test_a_session_ends_and_is_renewed_by_the_same_user_only() -> None:
    door = Door(lifetime_ms=1_000)
    door.gate.choose("PLAIN")
    assert door.gate.authenticate(plain_message("alice", "a")).lifetime_ms == 1_000
    door.now_ms = 999
    assert door.gate.admits(METADATA)
    door.now_ms = 1_000
    assert not door.gate.admits(METADATA)
    assert door.log_in() == ErrorCode.NONE
    assert door.gate.admits(METADATA)
    assert door.gate.choose("OTHER") == ErrorCode.ILLEGAL_SASL_STATE
    assert door.log_in("bob", "b") == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert not door.gate.admits(METADATA)


@given(st.lists(st.sampled_from(["PLAIN", "OTHER", "alice", "bob", "wrong", b"", b"\0\0"]), max_size=20))
def test_the_gate_opens_only_for_a_right_password_and_a_user_never_changes(steps: list[str | bytes]) -> None:
    door = Door()
    users = set()
    for step in steps:
        if step in ("PLAIN", "OTHER"):
            door.gate.choose(str(step))
            continue
        token = step if isinstance(step, bytes) else plain_message(step, USERS.get(step, "x"))
        before = door.gate.principal
        answer = door.gate.authenticate(token)
        if door.gate.principal != before:
            assert (before, answer.code) == (ANONYMOUS, ErrorCode.NONE)
        if answer.ends:
            assert not door.gate.admits(METADATA)
            return
        if door.gate.admits(METADATA):
            users.add(door.gate.principal)
    assert len(users) <= 1


@pytest.mark.parametrize("name", ["", "alice"])
def test_an_open_gate_stays_open_whatever_api_is_asked(name: str) -> None:
    door = Door()
    door.log_in()
    assert all(door.gate.admits(key) for key in range(100)), name
