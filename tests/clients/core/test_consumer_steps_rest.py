"""The consumer's remaining steps; `test_steps_rest` sees that none is left out."""

from __future__ import annotations

import threading

import pytest

from ixion.clients import Consumer
from ixion.clients.core.consumer.errors import WakeupError
from ixion.language.protocol.registry import ApiKey
from tests.clients.core.test_consumer_steps import fetches, reading
from tests.clients.fake import FakeCluster
from tests.clients.test_reader import ORDERS


def test_step_11_6_a_wakeup_while_the_sockets_are_polled_is_raised() -> None:
    woken = threading.Event()
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        with Consumer(fakes.bootstrap) as consumer:
            consumer.assign([ORDERS[0]])

            def wake() -> None:
                while not fakes.count(ApiKey.FETCH):
                    woken.wait(0.01)
                consumer.wakeup()

            thread = threading.Thread(target=wake)
            thread.start()
            with pytest.raises(WakeupError):
                consumer.poll(60)
            thread.join()


def test_step_11_7_an_interrupt_leaves_a_consumer_that_reads_on() -> None:
    """The engine calls `recover` when anything is raised in the middle of a turn."""
    sim, machine = reading(40)
    found = sim.poll(machine, 0.5)
    while len(found) < 40:
        machine.tick(sim.now_s)
        machine.recover(sim.now_s)
        found += sim.poll(machine, 2.0)
    assert [offset for _, offset in found] == list(range(40))


def test_step_11_11_answers_are_taken_in_by_the_poll_that_they_come_in() -> None:
    sim, machine = reading(20)
    assert sim.poll(machine, 0.0) == []  # nothing is here, and nothing is waited for
    asked = len(fetches(sim))
    assert sim.poll(machine, 5.0) == [(0, offset) for offset in range(7)]
    assert len(fetches(sim)) > asked  # the same poll has asked, and taken in the answer
