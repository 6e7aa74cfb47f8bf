from __future__ import annotations

import pytest

from tests.apis.raw import Raw
from tests.apis.test_k65_describe_transactions import describe
from tests.apis.txn_kit import add, batch, end, init, produce


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_before_version_5_the_epoch_stays(raw: Raw, version: int) -> None:
    name = f"end {version}"
    producer_id, epoch = init(raw, name)
    for commit in (True, False):
        add(raw, name, producer_id, epoch, 0)
        assert end(raw, name, producer_id, epoch, commit, version)[0] == "NONE"
        assert end(raw, name, producer_id, epoch, commit, version)[0] == "NONE", "said twice, done once"
        assert end(raw, name, producer_id, epoch, not commit, version)[0] == "INVALID_TXN_STATE"


def test_from_version_5_on_every_end_raises_it(raw: Raw) -> None:
    producer_id, epoch = init(raw, "end 5")
    for commit in (True, False, True):
        assert produce(raw, "end 5", batch(producer_id, epoch)) == "NONE"
        assert end(raw, "end 5", producer_id, epoch, commit, 5) == ("NONE", producer_id, epoch + 1)
        epoch += 1


@pytest.mark.parametrize("commit", [True, False])
def test_an_end_held_back_changes_nothing_later(raw: Raw, commit: bool) -> None:
    name = f"held back {commit}"
    producer_id, epoch = init(raw, name)
    produce(raw, name, batch(producer_id, epoch))
    end(raw, name, producer_id, epoch, True, 5)
    produce(raw, name, batch(producer_id, epoch + 1))
    assert end(raw, name, producer_id, epoch, commit, 5)[0] == "PRODUCER_FENCED"
    assert end(raw, name, producer_id, epoch + 1, True, 5) == ("NONE", producer_id, epoch + 2)


@pytest.mark.parametrize(("version", "code"), [(1, "INVALID_PRODUCER_EPOCH"), (2, "PRODUCER_FENCED")])
def test_a_fenced_producer_gets_a_code_that_its_version_knows(raw: Raw, version: int, code: str) -> None:
    producer_id, epoch = init(raw, "fenced at the end")
    add(raw, "fenced at the end", producer_id, epoch, 0)
    init(raw, "fenced at the end")
    assert end(raw, "fenced at the end", producer_id, epoch, True, version)[0] == code


def test_another_ones_transaction(raw: Raw) -> None:
    producer_id, epoch = init(raw, "mine")
    other, _ = init(raw, "yours")
    add(raw, "mine", producer_id, epoch, 0)
    assert end(raw, "mine", other, 0, True, 5)[0] == "INVALID_PRODUCER_ID_MAPPING"
    assert end(raw, "nobody's", producer_id, epoch, True, 5)[0] == "INVALID_PRODUCER_ID_MAPPING"
    assert end(raw, "mine", producer_id, epoch + 7, False, 5)[0] == "PRODUCER_FENCED"
    (state,) = describe(raw, "mine")
    assert (state.transaction_state, state.producer_epoch) == ("Ongoing", epoch), "nothing has changed"
    assert end(raw, "mine", producer_id, epoch, True, 5)[0] == "NONE"
