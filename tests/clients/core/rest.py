"""Checks that a machine never sleeps although it has something to do."""

from __future__ import annotations

from ixion.clients.core.consumer.machine import ConsumerMachine
from ixion.clients.core.producer.machine import ProducerMachine
from ixion.clients.core.share.machine import ShareMachine


def assert_at_rest(machine: ConsumerMachine | ProducerMachine | ShareMachine, now_s: float) -> None:
    """A machine that names a later time to be woken has nothing to do before: a second tick sends nothing. A face that
    ticks more often than it must would hide the missing wake-up."""
    if machine.wake_s > now_s:
        machine.tick(now_s)
        assert not machine.client.take_opened(), "connects only because it was ticked again"
        assert not any(each.unsent for each in machine.client.machines), "sends only because it was ticked again"
