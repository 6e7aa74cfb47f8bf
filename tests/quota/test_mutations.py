"""Changes of topics are counted by a token bucket, as Kafka does (KIP-599)."""

from __future__ import annotations

import pytest

from ixion.broker.quota.limits import DEFAULT, MUTATION, Entity, QuotaLimits
from ixion.broker.quota.mutations import Mutations
from ixion.broker.quota.quotas import MOST_BYTES
from ixion.broker.quota.token_bucket import TokenBucket
from tests.quota.test_quotas import Clock


def mutations(clock: Clock, bound: float = 2.0) -> Mutations:
    limits = QuotaLimits()
    limits.put(Entity(DEFAULT), {MUTATION: bound})
    return Mutations(limits, 11, 1_000, clock)


def test_the_example_of_the_file() -> None:
    clock = Clock()
    made = mutations(clock)
    assert made.record("u", "c", 30, strict=True) == (True, 0)
    clock.now_ms += 1_000
    assert made.record("u", "c", 1, strict=True) == (False, 3_000)
    clock.now_ms += 3_000
    assert made.record("u", "c", 1, strict=True) == (True, 0)
    assert made.record("u", "c", 1, strict=True) == (False, 500)


def test_a_refused_change_takes_nothing() -> None:
    clock = Clock()
    made = mutations(clock)
    made.record("u", "c", 24, strict=True)
    for _ in range(100):
        assert made.record("u", "c", 50, strict=True) == (False, 1_000)


def test_an_older_client_is_let_through_and_waits() -> None:
    clock = Clock()
    made = mutations(clock)
    assert made.record("u", "c", 22, strict=False) == (True, 0)
    assert made.record("u", "c", 4, strict=False) == (True, 2_000)
    assert made.record("u", "c", 4, strict=False) == (True, 4_000)


def test_users_do_not_pay_for_each_other() -> None:
    clock = Clock()
    made = mutations(clock)
    made.record("u", "c", 100, strict=True)
    assert not made.record("u", "other client", 1, strict=True).accepted
    assert made.record("v", "c", 1, strict=True).accepted


def test_tokens_are_bounded_by_the_burst_of_the_quota_as_it_is() -> None:
    bucket = TokenBucket(11, 1_000, 2.0, 0)
    assert bucket.tokens(2.0, 10**9) == 22
    assert bucket.tokens(1.0, 10**9) == 11  # the quota was lowered
    assert bucket.tokens(100.0, 10**9) == 11  # and raised: tokens come with time only
    bucket.take(20)
    assert bucket.tokens(2.0, 10**9 + 500) == pytest.approx(-8)


def test_without_a_quota_nothing_is_remembered() -> None:
    made = Mutations(QuotaLimits(), 11, 1_000, Clock())
    assert made.record("u", "c", 10**9, strict=True) == (True, 0)
    assert len(made.buckets) == 0


def test_few_buckets_are_remembered_however_many_clients_there_are() -> None:
    limits = QuotaLimits()
    limits.put(Entity(None, DEFAULT), {MUTATION: 1.0})
    made = Mutations(limits, 11, 1_000, Clock())
    for number in range(20_000):
        made.record("u", f"client {number}", 1, strict=True)
    assert 5_000 < len(made.buckets) < 12_000
    assert made.buckets.bytes <= MOST_BYTES
