from __future__ import annotations

import pytest

from ixion.language.protocol.registry import ApiKey
from tests.apis.asking import versions
from tests.apis.share_kit import ACCEPT, REJECT, RELEASE, RENEW
from tests.apis.test_k78_share_fetch import Join, join

__all__ = ["join"]


@pytest.mark.parametrize("version", versions(ApiKey.SHARE_ACKNOWLEDGE))
def test_what_is_accepted_is_not_delivered_again(join: Join, version: int) -> None:
    one = join("one", version)
    assert one.acquire() == [(0, 19, 1)]
    assert one.codes((0, 4, ACCEPT), (5, 9, REJECT), (10, 14, RELEASE)) == ["NONE"]
    assert one.codes((15, 19, ACCEPT), share_session_epoch=-1) == ["NONE"]
    assert join("other", version).acquire() == [(10, 14, 2)]


def test_batches_count_all_or_none(join: Join) -> None:
    one = join()
    one.acquire(max_records=4)
    assert one.codes((0, 1, ACCEPT), (4, 5, ACCEPT)) == ["INVALID_REQUEST"]
    assert one.codes((0, 3, ACCEPT)) == ["NONE"]
    assert one.codes((0, 3, ACCEPT)) == ["NONE"], "before the start: nothing is left to do"


def test_another_members_records(join: Join) -> None:
    one, other = join("one"), join("other")
    one.acquire(max_records=4)
    other.acquire(max_records=4)
    assert other.codes((0, 3, ACCEPT)) == ["INVALID_RECORD_STATE"]


@pytest.mark.parametrize("batch", [(0, 3, 5), (0, 3, -1), (0, 3, RENEW), (3, 0, ACCEPT)])
def test_batches_that_no_client_sends(join: Join, batch: tuple[int, int, int]) -> None:
    one = join()
    one.acquire(max_records=4)
    assert one.codes(batch) == ["INVALID_REQUEST"]


def test_batches_out_of_order(join: Join) -> None:
    one = join()
    one.acquire(max_records=4)
    assert one.codes((2, 3, ACCEPT), (0, 1, ACCEPT)) == ["INVALID_REQUEST"]


def test_one_record_is_acknowledged_once_in_a_request(join: Join) -> None:
    """The answer is about both, so neither may be left out."""
    one = join()
    one.acquire(max_records=4)
    assert one.codes((0, 3, RELEASE), (0, 3, ACCEPT)) == ["INVALID_REQUEST"]
    assert one.codes((0, 3, ACCEPT), (0, 3, ACCEPT)) == ["NONE"], "the same twice is once"
    assert join("other").acquire(max_records=1)[0][0] == 4


def test_a_renewal_has_the_new_time(join: Join) -> None:
    one = join()
    one.acquire(max_records=4)
    answer = one.acknowledge((0, 3, RENEW), is_renew_ack=True)
    assert answer.acquisition_lock_timeout_ms == 30_000
    assert one.codes((0, 3, ACCEPT)) == ["NONE"]


@pytest.mark.parametrize(("epoch", "code"), [(0, "INVALID_SHARE_SESSION_EPOCH"), (3, "INVALID_SHARE_SESSION_EPOCH")])
def test_epochs(join: Join, epoch: int, code: str) -> None:
    one = join()
    one.acquire(max_records=4)
    assert one.codes((0, 3, ACCEPT), share_session_epoch=epoch) == [code]


def test_without_a_session(join: Join) -> None:
    assert join().codes((0, 3, ACCEPT), share_session_epoch=1) == ["SHARE_SESSION_NOT_FOUND"]


def test_an_unknown_topic(join: Join) -> None:
    one = join()
    one.acquire(max_records=4)
    one.topic_id = bytes(range(16))
    assert one.codes((0, 3, ACCEPT)) == ["UNKNOWN_TOPIC_ID"]
