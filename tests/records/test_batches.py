"""Walking over several batches, whole and torn."""

from __future__ import annotations

import pytest

from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.batches import iter_batches, iter_complete_batches
from ixion.language.records.layout import LOG_OVERHEAD, MAGIC
from tests.records.forge import batch, record

FIRST = batch(record(), base_offset=5)
SECOND = batch(record() + record(1), count=2, base_offset=6)
BOTH = FIRST + SECOND


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
def test_whole_batches(wrap: type[bytes] | type[bytearray] | type[memoryview]) -> None:
    for walk in (iter_batches, iter_complete_batches):
        views = list(walk(wrap(BOTH)))
        assert [(view.base_offset, view.count, view.position) for view in views] == [(5, 1, 0), (6, 2, len(FIRST))]
        assert list(walk(wrap(b""))) == []


def test_a_torn_tail_is_an_error_to_one_and_the_end_to_the_other() -> None:
    for end in range(len(FIRST) + 1, len(BOTH)):
        torn = BOTH[:end]
        assert [view.base_offset for view in iter_complete_batches(torn)] == [5]
        strict = iter_batches(torn)
        assert next(strict).base_offset == 5
        with pytest.raises(KafkaError) as caught:
            next(strict)
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("length", [-1, 0, 48, -(2**31)])
def test_a_length_that_can_never_be_true_is_an_error_to_both(length: int) -> None:
    data = FIRST + batch(record(), length=length)
    for walk in (iter_batches, iter_complete_batches):
        with pytest.raises(KafkaError) as caught:
            list(walk(data))
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("magic", [0, 1])
def test_old_magic_is_named_as_soon_as_it_is_seen(magic: int) -> None:
    data = batch(record(), magic=magic)
    for end in (MAGIC + 1, 40, len(data)):
        for walk in (iter_batches, iter_complete_batches):
            with pytest.raises(KafkaError) as caught:
                list(walk(data[:end]))
            assert caught.value.code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
    assert list(iter_complete_batches(data[: LOG_OVERHEAD + 1])) == []
