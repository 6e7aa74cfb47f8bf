"""Nothing of an aborted transaction is sent in the next one; and what an abort recovers from."""

from __future__ import annotations

import pytest

from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.registry import ApiKey
from tests.clients.core.transactional import TransactionalSimulation

REFUSALS = (
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_RECORD,
)


def next_transaction(sim: TransactionalSimulation) -> list[bytes]:
    """Commits one record in another transaction. What the log has then."""
    assert sim.transactions.is_settled
    sim.transactions.check()
    sim.transactions.begin()
    assert sim.send(b"next", 0)
    sim.machine.commit()
    sim.run(5)
    assert sim.transactions.is_settled
    assert not sim.machine.incomplete
    assert sim.machine.used_bytes == 0
    return sim.logs[0].values


@pytest.mark.parametrize("code", REFUSALS, ids=lambda code: code.name)
def test_what_is_answered_while_aborting_is_not_sent_again(code: ErrorCode) -> None:
    sim = TransactionalSimulation()
    for number in range(9):
        assert sim.send(b"aborted-%d" % number, 0)
    sim.holds.add(ApiKey.PRODUCE)
    sim.refuse(ApiKey.PRODUCE, code)
    sim.machine.seal_all()
    sim.run(5)
    assert len(sim.held) == 1
    sim.machine.abort()
    sim.run(1)
    assert sim.ends == []  # the answer is awaited first
    sim.release()
    assert sim.ends == [False]
    assert all(delivery.error is not None for heard in sim.heard.values() for delivery in heard)
    assert next_transaction(sim) == [b"next"]
    assert sim.ends == [False, True]


@pytest.mark.parametrize(
    "code", [ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.TRANSACTION_ABORTABLE]
)
def test_a_refused_commit_is_recovered_from_by_an_abort(code: ErrorCode) -> None:
    """As Java's producer does; these ended ours for good."""
    sim = TransactionalSimulation()
    sim.refuse(ApiKey.END_TXN, code)
    sim.machine.commit()
    sim.run(5)
    with pytest.raises(KafkaError) as caught:
        sim.transactions.check()
    assert caught.value.code == code
    sim.machine.abort()
    sim.run(5)
    assert sim.ends == [False]
    assert next_transaction(sim) == [b"first", b"next"]


@pytest.mark.parametrize("code", [ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.UNKNOWN_PRODUCER_ID])
def test_an_abort_of_a_forgotten_transaction_gets_a_new_epoch(code: ErrorCode) -> None:
    sim = TransactionalSimulation()
    sim.machine.seal_all()
    sim.run(5)
    before = sim.transactions.current
    sim.refuse(ApiKey.END_TXN, code)
    sim.machine.abort()
    sim.run(5)
    assert sim.transactions.current.epoch > before.epoch
    assert next_transaction(sim) == [b"first", b"next"]


def test_invalid_state_ends_the_producer_for_good() -> None:
    sim = TransactionalSimulation()
    sim.refuse(ApiKey.END_TXN, ErrorCode.INVALID_TXN_STATE)
    sim.machine.commit()
    sim.run(5)
    with pytest.raises(KafkaError, match="transactional id 'books'"):
        sim.transactions.begin()


@pytest.mark.parametrize("answered", [True, False])
def test_an_abort_of_a_transaction_that_has_not_begun_at_the_coordinator(answered: bool) -> None:
    """The first partition was refused, or its addition has not got there: the coordinator has nothing to end. Java's
    producer goes on; ours had failed for good."""
    sim = TransactionalSimulation()
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED if answered else ErrorCode.COORDINATOR_NOT_AVAILABLE
    sim.refuse(ApiKey.ADD_PARTITIONS_TO_TXN, refused)
    sim.machine.seal_all()
    sim.run(5 if answered else 0.05)
    sim.machine.abort()
    sim.run(5)
    assert sim.ends == []
    assert next_transaction(sim) == [b"next"]


def test_the_partition_to_blame_is_named_not_those_that_were_left_alone() -> None:
    sim = TransactionalSimulation()
    sim.send(b"other", 1)
    sim.refuse(ApiKey.ADD_PARTITIONS_TO_TXN, ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.OPERATION_NOT_ATTEMPTED)
    sim.machine.seal_all()
    sim.run(5)
    with pytest.raises(KafkaError) as caught:
        sim.transactions.check()
    assert caught.value.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
