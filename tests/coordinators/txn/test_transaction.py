"""The table of states: what it does not allow raises and changes nothing."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from ixion.broker.coordinators.txn.snapshot import created
from ixion.broker.coordinators.txn.states import MAY_FOLLOW, State
from ixion.broker.coordinators.txn.transaction import IllegalTransitionError, Transaction


@pytest.mark.parametrize(("before", "after"), list(product(State, State)))
def test_only_what_the_table_allows(before: State, after: State) -> None:
    now = replace(created(1, 1_000, 0), state=before, epoch=3)
    transaction = Transaction("x", now)
    if before in MAY_FOLLOW[after]:
        transaction.prepare(replace(now, state=after))
        assert transaction.now is now
        assert transaction.complete().state is after
    else:
        with pytest.raises(IllegalTransitionError):
            transaction.prepare(replace(now, state=after))
        assert (transaction.now, transaction.pending) == (now, None)


def test_one_change_at_a_time() -> None:
    transaction = Transaction("x", created(1, 1_000, 0))
    with pytest.raises(IllegalTransitionError):
        transaction.complete()
    transaction.prepare(replace(transaction.now, epoch=0))
    with pytest.raises(IllegalTransitionError):
        transaction.prepare(replace(transaction.now, epoch=0))
    transaction.give_up()
    transaction.prepare(replace(transaction.now, epoch=0))


def test_an_epoch_never_goes_back() -> None:
    transaction = Transaction("x", replace(created(1, 1_000, 0), epoch=4))
    with pytest.raises(IllegalTransitionError):
        transaction.prepare(replace(transaction.now, epoch=3))
    transaction.prepare(replace(transaction.now, epoch=0, producer_id=2))
