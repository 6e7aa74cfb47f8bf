"""A commit whose answer does not come: what the caller may do meanwhile, and what it hears in the end."""

from __future__ import annotations

import pytest

from ixion.language.protocol.registry import ApiKey
from tests.clients.core.transactional import TransactionalSimulation


def held_commits() -> TransactionalSimulation:
    sim = TransactionalSimulation()
    sim.holds.add(ApiKey.END_TXN)
    return sim


def test_a_commit_that_is_in_doubt_cannot_be_aborted() -> None:
    """Else the abort would be reported as done, though the transaction was committed."""
    sim = held_commits()
    sim.machine.commit()
    sim.run(5)
    assert len(sim.held) == 1
    with pytest.raises(ValueError, match="call commit_transaction again"):
        sim.machine.abort()
    sim.machine.commit()  # goes on with the first
    sim.release()
    assert sim.transactions.is_settled
    assert sim.ends == [True]


def test_before_the_coordinator_is_asked_an_abort_is_possible() -> None:
    sim = held_commits()
    sim.machine.commit()
    sim.machine.abort()
    sim.run(5)
    sim.release()
    assert sim.transactions.is_settled
    assert sim.ends == []  # nothing had been written
