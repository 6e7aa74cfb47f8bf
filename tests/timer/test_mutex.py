"""The mutex excludes, hands over, and never loses a waiter."""

from __future__ import annotations

import threading

from ixion.timer.mutex import Mutex


def test_many_threads_never_meet_inside() -> None:
    mutex = Mutex()
    inside = 0
    met = 0
    total = 0

    def work() -> None:
        nonlocal inside, met, total
        for _ in range(2_000):
            mutex.acquire()
            inside += 1
            met += inside != 1
            total += 1
            inside -= 1
            mutex.release()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (met, total) == (0, 16_000)


def test_a_waiter_gets_the_mutex_when_it_is_given_back() -> None:
    mutex = Mutex()
    mutex.acquire()
    got = threading.Event()

    def wait() -> None:
        mutex.acquire()
        got.set()
        mutex.release()

    thread = threading.Thread(target=wait)
    thread.start()
    assert not got.wait(0.05)
    mutex.release()
    assert got.wait(5)
    thread.join()
