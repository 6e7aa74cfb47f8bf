from __future__ import annotations

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k65_describe_transactions import DescribeTransactionsRequest, TransactionState
from ixion.language.protocol.registry import ApiKey
from tests.apis.raw import Raw
from tests.apis.txn_kit import add, end, init


def describe(raw: Raw, *names: str) -> list[TransactionState]:
    answer = raw.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, DescribeTransactionsRequest(transactional_ids=names))
    return list(answer.transaction_states)


def test_an_open_one_and_an_ended_one(raw: Raw) -> None:
    producer_id, epoch = init(raw, "seen", timeout_ms=12_345)
    add(raw, "seen", producer_id, epoch, 2, 0)
    (state,) = describe(raw, "seen")
    assert (state.error_code, state.transaction_state, state.transaction_timeout_ms) == (0, "Ongoing", 12_345)
    assert (state.producer_id, state.producer_epoch) == (producer_id, epoch)
    assert [(topic.topic, topic.partitions) for topic in state.topics] == [("t", (0, 2))]
    assert state.transaction_start_time_ms > 1_600_000_000_000
    end(raw, "seen", producer_id, epoch, False, 3)
    (state,) = describe(raw, "seen")
    assert (state.transaction_state, state.topics) == ("CompleteAbort", ())


def test_what_is_unknown(raw: Raw) -> None:
    codes = [ErrorCode(each.error_code).name for each in describe(raw, "never", "")]
    assert codes == ["TRANSACTIONAL_ID_NOT_FOUND", "INVALID_REQUEST"]
