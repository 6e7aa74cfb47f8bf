"""Kafka's arithmetic of quotas: rates over windows, waits, and which quota holds."""

from __future__ import annotations

import itertools

import pytest

from ixion.broker.quota.limits import DEFAULT, FETCH, PRODUCE, REQUEST, Entity, QuotaLimits, quotas_of
from ixion.broker.quota.quotas import MOST_BYTES, Quotas
from ixion.broker.quota.rate import Rate


class Clock:
    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def __call__(self) -> int:
        return self.now_ms


def quotas(clock: Clock, kind: str = PRODUCE, bound: float = 1_000.0) -> Quotas:
    made = Quotas(11, 1_000, clock)
    made.put(Entity(DEFAULT), {kind: bound})
    return made


def test_the_example_of_the_file() -> None:
    clock = Clock()
    made = quotas(clock)
    assert made.record(PRODUCE, "u", "c", 10_000) == 0
    clock.now_ms += 500
    assert made.record(PRODUCE, "u", "c", 1_050) == 550
    assert made.throttled == {PRODUCE: 1}


def test_a_client_that_obeys_the_throttle_time_gets_its_rate() -> None:
    clock = Clock()
    made = quotas(clock, bound=50_000.0)
    begun_ms, sent = clock.now_ms, 0
    for _ in range(2_000):
        sent += 16_384
        clock.now_ms += 1 + made.record(PRODUCE, "u", "c", 16_384)
    rate = sent * 1_000 / (clock.now_ms - begun_ms)
    assert 50_000 * 0.99 <= rate <= 50_000 * 1.05  # the burst of the beginning is a few seconds' worth


def test_old_windows_do_not_count() -> None:
    rate = Rate(11, 1_000)
    rate.record(50_000, 0)
    assert rate.measure(0)[0] == 5_000
    assert rate.measure(10_999)[0] == pytest.approx(50_000 / 10.999)
    assert rate.measure(11_000)[0] == 0
    rate.record(1_000, 20_000)
    assert rate.measure(20_000)[0] == 100


def test_windows_are_used_again() -> None:
    rate = Rate(3, 1_000)
    for second in range(100):
        rate.record(100, second * 1_000)
        assert len(rate._windows) <= 4
    assert rate.measure(99_000)[0] == 150  # of the window that has just begun nothing has passed yet


def test_time_of_the_processor_is_waited_for_one_window_at_most() -> None:
    clock = Clock()
    made = quotas(clock, REQUEST, 1.0)
    assert made.record(REQUEST, "u", "c", 5_000.0) == 1_000


def test_without_a_quota_nothing_is_recorded() -> None:
    clock = Clock()
    made = quotas(clock)
    assert made.record(FETCH, "u", "c", 1e12) == 0
    made.put(Entity(DEFAULT), {})
    assert made.record(PRODUCE, "u", "c", 1e12) == 0
    assert len(made.rates) == 0


def test_few_rates_are_remembered_however_many_clients_there_are() -> None:
    clock = Clock()
    made = Quotas(11, 1_000, clock)
    made.put(Entity(None, DEFAULT), {PRODUCE: 1_000.0})
    for number in range(20_000):
        made.record(PRODUCE, "u", f"client {number}", 1)
    assert 5_000 < len(made.rates) < 12_000
    assert MOST_BYTES - 3_000 < made.rates.bytes <= MOST_BYTES
    assert made.record(PRODUCE, "u", "client 19999", 10**6) > made.record(PRODUCE, "u", "client 0", 10**4) == 0


def test_long_names_take_their_memory_from_the_same_budget() -> None:
    """32,767 bytes of one emoji and plain letters take four bytes for each letter."""
    made = Quotas(11, 1_000, Clock())
    made.put(Entity(None, DEFAULT), {PRODUCE: 1_000.0})
    for number in range(1_000):
        made.record(PRODUCE, "u", f"\N{HATCHING CHICK}{number:0>32700}", 1)
    assert len(made.rates) < 140
    assert made.rates.bytes <= MOST_BYTES
    assert len(made.limits.found) < 40
    assert made.limits.found.bytes <= made.limits.found.most_bytes


ORDER = (
    (Entity("u", "c"), ("u", "c")),
    (Entity("u", DEFAULT), ("u", "c")),
    (Entity("u"), ("u", "")),
    (Entity(DEFAULT, "c"), ("u", "c")),
    (Entity(DEFAULT, DEFAULT), ("u", "c")),
    (Entity(DEFAULT), ("u", "")),
    (Entity(None, "c"), ("", "c")),
    (Entity(None, DEFAULT), ("", "c")),
)


def test_the_most_special_quota_holds() -> None:
    for count in range(1, 4):
        for chosen in itertools.combinations(range(len(ORDER)), count):
            limits = QuotaLimits()
            for number in reversed(chosen):
                limits.put(ORDER[number][0], {PRODUCE: float(number + 1)})
            limits.put(Entity("other", "c"), {PRODUCE: 99.0})
            limits.put(Entity("u", "c"), {**limits.entities.get(Entity("u", "c"), {}), FETCH: 77.0})
            found = limits.find(PRODUCE, "u", "c")
            assert found is not None
            assert (found.bound, found.held_by) == (chosen[0] + 1, ORDER[chosen[0]][1])


def test_changes_say_when_there_are_quotas_and_when_there_are_none() -> None:
    made = Quotas(11, 1_000, Clock())
    said: list[bool] = []
    made.on_change = lambda: said.append(made.limits.any)
    made.put(Entity("u"), {PRODUCE: 1.0})
    made.put(Entity("v"), {PRODUCE: 1.0})
    made.put(Entity("u"), {})
    made.put(Entity("v"), {"SCRAM-SHA-256": 1.0})
    assert said == [True, False]
    assert made.most_at_once(PRODUCE, "u", "c") is None
    made.put(Entity("u"), {PRODUCE: 100.0})
    assert made.most_at_once(PRODUCE, "u", "c") == 1_000


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "many"])
def test_a_quota_that_no_client_can_be_held_to_is_no_quota(value: str) -> None:
    with pytest.raises(ValueError, match=r"0|many"):
        quotas_of({PRODUCE: value})
    assert quotas_of({PRODUCE: "1", REQUEST: "0.5"}) == {PRODUCE: 1.0, REQUEST: 0.5}
