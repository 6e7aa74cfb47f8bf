"""When memory is given back to the system."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from ixion.broker.memory import MUCH, MemoryReturn, trim_heap


def test_memory_is_given_back_once_much_was_unsent_and_is_no_more() -> None:
    unsent = 0
    trimmed: list[int] = []
    with ThreadPoolExecutor(1) as workers:
        memory = MemoryReturn(lambda: unsent, workers, lambda: trimmed.append(unsent))
        for unsent in (0, MUCH - 1, 0, MUCH, MUCH // 2):  # noqa: B007 - read by the lambda
            memory.look()
        workers.submit(int).result()
        assert trimmed == []
        unsent = MUCH // 8
        memory.look()
        workers.submit(int).result()
        assert trimmed == [MUCH // 8]
        memory.look()
        workers.submit(int).result()
        assert len(trimmed) == 1


def test_the_c_library_can_be_asked() -> None:
    trim_heap()
