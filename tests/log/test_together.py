from __future__ import annotations

import threading

from ixion.broker.log.together import THREADS, for_each
from ixion.language.model.errors import ErrorCode, KafkaError


def test_all_items_are_done_and_the_failed_ones_are_returned() -> None:
    done: list[int] = []

    def work(item: int) -> None:
        if item % 10 == 7:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{item} is broken")
        done.append(item)

    failed = for_each(range(30), work)
    assert [(item, error.message) for item, error in failed] == [(each, f"{each} is broken") for each in (7, 17, 27)]
    assert sorted([*done, 7, 17, 27]) == list(range(30))
    assert for_each([], work) == []
    assert [item for item, _ in for_each([7], work)] == [7]


def test_many_are_done_at_the_same_time() -> None:
    together = threading.Barrier(THREADS, timeout=20)
    assert for_each(range(THREADS), lambda _: together.wait()) == []
