"""Which connections are read when memory is short: ordinary requests first, large ones in turn, one always."""

from __future__ import annotations

from ixion.broker.network.memory_pool import LARGE, MemoryPool
from ixion.broker.network.read_buffer import NARROW, WIDE

POOL = 256 * LARGE
HUGE = 100 * LARGE


class Sender:
    """A connection on which a frame of `size` bytes comes, one read at a time, as far as the pool lets it."""

    def __init__(self, pool: MemoryPool, size: int) -> None:
        self.pool = pool
        self.size = size
        self.large = size > LARGE
        self.sent = 0
        self.waits = False

    @property
    def whole(self) -> bool:
        return self.sent == self.size

    def send(self, size: int = 1 << 40) -> None:
        """Up to `size` bytes; stops when the pool says so."""
        size = min(size, self.size - self.sent)
        while size and not self.waits:
            read = min(WIDE if self.pool.may_read(self, self.large) else NARROW, size)
            self.pool.take(read, self.large)
            self.sent += read
            size -= read
            if not self.whole and not self.pool.may_read(self, self.large):
                self.waits = self.pool.wait(self, self.large)

    def go_on(self) -> None:
        self.waits = False

    def leave(self) -> None:
        """The request has been handled, or the connection has ended."""
        sent, self.sent = self.sent, 0
        self.pool.release(sent, self.large)
        self.pool.leave(self)


def test_announcing_is_free() -> None:
    pool = MemoryPool(POOL)
    silent = [Sender(pool, HUGE if number % 2 else LARGE // 2) for number in range(10_000)]
    for each in silent:
        each.send(4)
    assert pool.used == 40_000
    honest = Sender(pool, 50 * LARGE)
    honest.send()
    assert honest.whole


def test_large_ones_leave_a_quarter_to_the_others() -> None:
    pool = MemoryPool(POOL)
    huge = [Sender(pool, HUGE) for _ in range(5)]
    for each in huge:
        each.send(HUGE - 1)
    assert pool.used <= POOL * 3 // 4 + HUGE + WIDE + 5 * NARROW  # one of them has the pass
    small = [Sender(pool, LARGE) for _ in range(60)]
    for each in small:
        each.send()
    assert all(each.whole for each in small)


def test_however_many_send_half_a_frame_the_pool_is_bounded_and_one_gets_through() -> None:
    pool = MemoryPool(POOL)
    halves = [Sender(pool, 2 * LARGE) for _ in range(300)] + [Sender(pool, LARGE // 2) for _ in range(1500)]
    for _ in range(8):
        for each in halves:
            each.send(LARGE // 8)
    most = 0
    rounds = 0
    while any(not each.whole for each in halves):
        most = max(most, pool.used)
        finished = [each for each in halves if each.whole and each.sent]
        if not finished:
            for each in halves:
                each.send()
            finished = [each for each in halves if each.whole and each.sent]
        assert finished, "nobody gets on"
        for each in finished:
            halves.remove(each)
            each.leave()
        rounds += 1
    assert most <= POOL + 3 * LARGE + 2 * WIDE + 1800 * NARROW  # a frame with the pass in each line
    for each in halves:
        each.leave()
    assert (pool.used, pool.waiting) == (0, 0)


def test_the_pass_goes_down_the_line() -> None:
    pool = MemoryPool(1000)
    holder = Sender(pool, 1500)
    holder.send()  # one read
    line = [Sender(pool, 20_000) for _ in range(3)]
    for each in line:
        each.send()
    assert [each.whole for each in line] == [True, False, False]
    assert pool.waiting == 2
    line[0].leave()
    line[1].send()
    line[2].send()
    assert [each.whole for each in line] == [False, True, False]
    line[1].leave()
    line[2].send()
    assert line[2].whole


def test_room_lets_in_as_many_as_may_read_their_share() -> None:
    pool = MemoryPool(8 * WIDE)
    first = [Sender(pool, WIDE) for _ in range(8)]
    for each in first:
        each.send()
    passing = Sender(pool, LARGE)
    passing.send(LARGE - 1)
    line = [Sender(pool, WIDE) for _ in range(20)]
    for each in line:
        each.send()
    assert pool.waiting == 20
    for each in first[:6]:
        each.leave()
    assert 0 < 20 - pool.waiting <= 3


def test_a_connection_that_leaves_the_queue_is_not_admitted() -> None:
    pool = MemoryPool(1000)
    first, passing, quitter = Sender(pool, 2000), Sender(pool, 8000), Sender(pool, 8000)
    for each in (first, passing, quitter):
        each.send()
    assert (passing.whole, quitter.waits) == (True, True)
    quitter.leave()
    first.leave()
    passing.leave()
    assert (quitter.waits, pool.used, pool.waiting) == (True, 0, 0)


class Ended(Sender):
    """Its client ended while it waited, which is noticed when it may read on."""

    def go_on(self) -> None:
        super().go_on()
        self.leave()


def test_memory_that_one_line_returns_while_it_moves_is_offered_to_the_other() -> None:
    pool = MemoryPool(8 * LARGE)
    first, ended = Sender(pool, 16 * LARGE), Ended(pool, 16 * LARGE)
    ended.send(6 * LARGE - WIDE)
    first.send(8 * LARGE)
    ended.send(LARGE)
    small = [Sender(pool, LARGE) for _ in range(4)]
    for each in small:
        each.send(LARGE - 1)
    assert (ended.waits, [each.waits for each in small]) == (True, [False, False, False, True])
    first.leave()
    assert (ended.waits, small[-1].waits, pool.waiting) == (False, False, 0)


def test_without_a_limit_all_come_in() -> None:
    pool = MemoryPool(-1)
    assert pool.may_read(Sender(pool, HUGE), True)
    pool = MemoryPool(10)
    waiting = [Sender(pool, 10_000) for _ in range(5)]
    for each in waiting:
        each.send()
    assert pool.waiting == 3
    pool.resize(-1)
    assert pool.waiting == 0
