"""How long a session lasts, how many there are, and how often an address may try to begin one."""

from __future__ import annotations

import asyncio

import pytest

from ixion.broker.security.credentials import ScramCredentials
from ixion.broker.security.gate import Gate
from ixion.broker.web.console import attempts, door, sessions
from ixion.broker.web.console.attempts import Attempts, network_of
from ixion.broker.web.console.door import Claim, Door, Way, passes
from ixion.broker.web.console.sessions import Sessions
from ixion.broker.web.response import RefusedError
from ixion.language.sasl.plain import PlainClient, PlainExchange
from ixion.timer.clock import NS_PER_MS

SECOND = 1000 * NS_PER_MS


class Time:
    def __init__(self) -> None:
        self.ns = 0

    def __call__(self) -> int:
        return self.ns


def opened(user: str = "bob", lifetime_ms: int = 0, time: Time | None = None) -> Gate:
    clock = time or Time()
    gate = Gate({"PLAIN": lambda: PlainExchange({user: "secret"})}, lifetime_ms, lambda: clock.ns // NS_PER_MS)
    assert asyncio.run(passes(gate, "PLAIN", lambda: PlainClient(user, "secret")))
    return gate


def always() -> bool:
    return True


def test_a_session_that_is_used_lasts_for_half_a_day() -> None:
    time = Time()
    known = Sessions(time)
    known.keep("secret", opened(), always)
    assert known.find("Secret") is None
    while time.ns < (sessions.LONGEST_S - 60) * SECOND:
        assert known.find("secret") is not None
        time.ns += 60 * SECOND
    time.ns += 60 * SECOND
    assert known.find("secret") is None
    assert len(known) == 0


def test_a_session_that_is_not_used_ends() -> None:
    time = Time()
    known = Sessions(time)
    known.keep("secret", opened(), always)
    time.ns += sessions.IDLE_S * SECOND
    assert known.find("secret") is None


def test_a_session_ends_with_its_proof() -> None:
    time = Time()
    known = Sessions(time)
    known.keep("secret", opened(lifetime_ms=5_000, time=time), always)
    time.ns += 4 * SECOND
    assert known.find("secret") is not None
    time.ns += 1 * SECOND
    assert known.find("secret") is None


def test_there_are_few_sessions_in_all_and_of_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST", 6)
    monkeypatch.setattr(sessions, "MOST_OF_ONE", 3)
    known = Sessions(Time())
    first = known.keep("bob 0", opened(), always)
    for number in range(1, 4):
        known.keep(f"bob {number}", opened(), always)
    assert known.find("bob 0") is None
    assert not known.is_open(first)  # a stream that still has it ends
    for number in range(4):
        known.keep(f"user {number}", opened(f"user {number}"), always)
    assert len(known) == 6
    assert [number for number in range(4) if known.find(f"bob {number}")] == [2, 3]


def test_an_address_has_few_attempts_a_minute() -> None:
    time = Time()
    counts = Attempts(time)
    for _ in range(100):
        counts.take("10.0.0.1")
        counts.give_back("10.0.0.1")  # those that succeed do not count
    for _ in range(attempts.MOST):
        counts.take("10.0.0.1")
    with pytest.raises(RefusedError) as caught:
        counts.take("10.0.0.1")
    assert caught.value.status == 429
    counts.take("10.0.0.2")
    time.ns += attempts.WINDOW_S * SECOND
    counts.take("10.0.0.1")


def test_guesses_that_wait_for_their_answer_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "AT_ONCE", 1)
    monkeypatch.setattr(door, "FAILED_S", 3600.0)
    way = Way(("PLAIN",), lambda: Gate({"PLAIN": lambda: PlainExchange({"bob": "secret"})}, 0, Time()))
    page = Door(
        asks=True,
        ways=lambda: [way],
        authorizer=None,
        credentials=ScramCredentials(),
        patience_ms=lambda: 0,
        is_secure=False,
        port=1,
    )

    async def story() -> None:
        guess = asyncio.create_task(page.sign_in("10.0.0.1", Claim("bob", "guess")))
        await asyncio.sleep(0)
        session, _ = await page.sign_in("10.0.0.2", Claim("bob", "secret"))
        assert session.gate.principal == "User:bob"
        assert not guess.done()
        guess.cancel()

    asyncio.run(story())


def test_few_addresses_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "KEPT", 5)
    counts = Attempts(Time())
    for number in range(20):
        counts.take(f"10.0.0.{number}")
    assert len(counts._counts) == 5


def test_addresses_of_one_network_count_as_one() -> None:
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:1") != network_of("2001:db8:0:1::1")
    assert network_of("::ffff:10.0.0.1") == network_of("10.0.0.1") != network_of("10.0.0.2")
    assert network_of("fe80::1%eth0") == network_of("fe80::2")
    assert network_of("") == ""
