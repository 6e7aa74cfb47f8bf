"""Addresses connect no faster than their quota says (KIP-612)."""

from __future__ import annotations

from ixion.broker.quota.addresses import AddressRates
from ixion.broker.quota.limits import DEFAULT
from ixion.broker.quota.quotas import MOST_BYTES
from tests.quota.test_quotas import Clock


def rates(clock: Clock, **bounds: float) -> AddressRates:
    made = AddressRates(11, 1_000, clock)
    for address, bound in bounds.items():
        made.put(address, bound)
    return made


def test_an_address_over_its_rate_waits_a_window_at_most() -> None:
    clock = Clock()
    made = rates(clock, here=2.0)
    assert [made.arrive("here") for _ in range(20)] == [0] * 20
    assert made.arrive("here") == 500  # one over: (2.1 - 2) / 2 of 10 s
    assert made.arrive("here") == 500  # a refused one does not count
    assert made.refused == 2
    clock.now_ms += 500
    assert made.arrive("here") == 0
    assert made.arrive("elsewhere") == 0


def test_a_very_low_rate_waits_one_window() -> None:
    made = rates(Clock(), here=0.01)
    assert made.arrive("here") == 1_000


def test_the_default_is_for_each_address_that_is_not_named() -> None:
    made = rates(Clock(), **{DEFAULT: 1.0, "named": 100.0})
    for address in ("a", "b"):
        assert [made.arrive(address) for _ in range(10)] == [0] * 10
        assert made.arrive(address) > 0
    assert [made.arrive("named") for _ in range(500)] == [0] * 500


def test_removed_quotas_throttle_no_client() -> None:
    made = rates(Clock(), here=0.1)
    made.arrive("here")
    assert made.arrive("here") > 0
    made.put("here", None)
    assert made.arrive("here") == 0
    assert len(made.rates) == 0


def test_few_addresses_are_remembered() -> None:
    made = rates(Clock(), **{DEFAULT: 1.0})
    for number in range(20_000):
        made.arrive(str(number))
    assert 5_000 < len(made.rates) < 12_000
    assert made.rates.bytes <= MOST_BYTES
