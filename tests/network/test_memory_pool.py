"""Who gets memory when there is little: the ordinary requests always, the large ones in their turn."""

from __future__ import annotations

from ixion.network.memory_pool import LARGE, MemoryPool

POOL = 256 * LARGE
HUGE = 100 * LARGE


class Waiting:
    """A connection that wants `size` bytes."""

    def __init__(self, pool: MemoryPool, size: int) -> None:
        self.pool = pool
        self.size = size
        self.has = False
        self.go_on()

    def go_on(self) -> None:
        self.has = self.pool.reserve(self.size)
        if not self.has:
            self.pool.wait(self, self.size)

    def leave(self) -> None:
        self.pool.forget(self)
        if self.has:
            self.has = False
            self.pool.release(self.size)


def test_announcing_huge_requests_holds_up_no_small_one() -> None:
    pool = MemoryPool(POOL)
    silent = [Waiting(pool, HUGE) for _ in range(5)]
    assert [each.has for each in silent] == [True, False, False, False, False]
    small = [Waiting(pool, LARGE) for _ in range(64)]
    assert all(each.has for each in small)


def test_a_quarter_is_there_for_small_ones_even_if_one_is_larger_than_the_pool() -> None:
    pool = MemoryPool(POOL)
    assert Waiting(pool, 2 * POOL).has
    small = [Waiting(pool, LARGE) for _ in range(65)]
    assert [each.has for each in small] == [True] * 64 + [False]


def test_large_ones_come_in_their_turn() -> None:
    pool = MemoryPool(POOL)
    first, second, third = (Waiting(pool, HUGE) for _ in range(3))
    first.leave()
    assert (second.has, third.has) == (True, False)
    second.leave()
    assert third.has
    third.leave()
    assert (pool.used, pool.waiting) == (0, 0)


def test_one_that_cannot_go_yet_does_not_hold_up_a_smaller_one() -> None:
    pool = MemoryPool(POOL)
    holder, other = Waiting(pool, HUGE), Waiting(pool, 80 * LARGE)
    big, lesser = Waiting(pool, 150 * LARGE), Waiting(pool, 60 * LARGE)
    assert (big.has, lesser.has) == (False, False)
    other.leave()
    assert (big.has, lesser.has) == (False, True)
    lesser.leave()
    holder.leave()
    assert big.has


def test_who_leaves_the_line_is_not_let_in() -> None:
    pool = MemoryPool(POOL)
    holder, quitter = Waiting(pool, HUGE), Waiting(pool, HUGE)
    quitter.leave()
    holder.leave()
    assert (quitter.has, pool.used, pool.waiting) == (False, 0, 0)


def test_without_a_limit_all_come_in() -> None:
    pool = MemoryPool(-1)
    assert all(Waiting(pool, HUGE).has for _ in range(10))
    pool = MemoryPool(10)
    waiting = [Waiting(pool, 10) for _ in range(3)]
    pool.resize(-1)
    assert all(each.has for each in waiting)
