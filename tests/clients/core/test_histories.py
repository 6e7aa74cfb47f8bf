"""The producer machine in histories from a seed: exactly once, in order, and every record heard of once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ixion.clients.core.client import ClientSettings
from ixion.clients.core.producer.settings import ProducerSettings
from ixion.clients.faults import TimedOutError
from ixion.language.records.compression import Codec
from tests.clients.core.sim import Simulation

PATIENT = ProducerSettings(batch_size=150, delivery_timeout_s=10_000.0, compression=Codec.NONE)
HASTY = PATIENT._replace(delivery_timeout_s=3.0, client=ClientSettings(request_timeout_s=1.0, metadata_max_age_s=2.0))


def history(seed: int, given_settings: ProducerSettings, records: int = 120) -> Simulation:
    sim = Simulation(seed, given_settings)
    choose = sim.choose
    number = 0
    while number < records:
        for _ in range(choose.randrange(1, 12)):
            if sim.send(b"%06d" % number, number % 2):
                number += 1
            else:
                break
        sim.run(choose.choice([0.0, 0.001, 0.01, 0.3, 2.0]))
    sim.finish()
    return sim


def check(sim: Simulation, *, once: bool) -> None:
    assert all(len(heard) == 1 for heard in sim.heard.values())
    assert len(sim.heard) >= 120
    for number, log in enumerate(sim.logs):
        mine = {value: heard[0] for value, heard in sim.heard.items() if int(value) % 2 == number}
        assert log.values == sorted(log.values) or not once
        if once:
            assert len(set(log.values)) == len(log.values)
        for value, delivery in mine.items():
            if delivery.error is None:
                assert value in log.values
                if delivery.offset >= 0:
                    assert log.values[delivery.offset] == value


@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_with_idempotence_each_record_is_written_once_and_in_order(seed: int) -> None:
    check(history(seed, PATIENT), once=True)


@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_when_time_runs_out_nothing_is_doubled_or_overtaken(seed: int) -> None:
    check(history(seed, HASTY), once=True)


@settings(max_examples=10)
@given(st.integers(0, 2**32))
def test_without_idempotence_every_record_is_reported_once(seed: int) -> None:
    check(history(seed, HASTY._replace(enable_idempotence=False, acks=1)), once=False)


@settings(max_examples=10)
@given(st.integers(0, 2**32))
def test_a_forced_close_tells_every_record(seed: int) -> None:
    sim = Simulation(seed, PATIENT)
    while not sim.send(b"%06d" % 0, 0):
        sim.run(0.1)
    for number in range(1, 60):
        sim.send(b"%06d" % number, number % 2)
        sim.run(sim.choose.random() * 0.02)
    sim.machine.close(TimedOutError("closed"), sim.now_s)
    while sim.machine.due:
        wish, delivery = sim.machine.due.popleft()
        wish(delivery)
    assert all(len(heard) == 1 for heard in sim.heard.values())


@pytest.mark.parametrize("seed", range(3))
def test_the_same_seed_is_the_same_history(seed: int) -> None:
    first, second = history(seed, HASTY), history(seed, HASTY)
    assert [log.values for log in first.logs] == [log.values for log in second.logs]
    assert first.now_s == second.now_s
