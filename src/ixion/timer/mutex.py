"""A mutex that costs 5 ns while it is uncontended.

`threading.Lock` costs 75 ns per acquire and release in compiled code, `with lock` 125 ns: twice the cost of the wheel's
own work. Taking the only element out of a list and putting it back costs 5 ns, and `list.pop` and `list.append` are
each atomic, compiled or interpreted. So a free mutex is a list with one element. The thread that pops it holds the
mutex; a thread that finds the list empty waits on an ordinary lock.

Why no wake-up is lost. The waiter W registers, then tries again; the holder H releases, then checks for waiters. In
every interleaving of the four steps, one of the two sees the other:

    1. W: _waiting += 1            3. H: _free.append(None)
    2. W: _free.pop() once more    4. H: _waiting > 0, so raise the signal

If 3 comes before 2, W gets the mutex in step 2. If 2 comes before 3, then so does 1, and H sees W in step 4. The
signal stays raised until one waiter takes it. If a quicker thread pops the element first, that waiter waits again, and
the quicker thread raises the signal again when it releases.

Rule for the caller: hold it for a few instructions, never while calling other code. It is not reentrant.
"""

from __future__ import annotations

import threading


class Mutex:
    __slots__ = ("_free", "_gate", "_signal", "_waiting")

    def __init__(self) -> None:
        self._free: list[None] = [None]
        self._gate = threading.Lock()  # guards _waiting
        self._signal = threading.Lock()  # raised = unlocked
        self._signal.acquire()
        self._waiting = 0

    def acquire(self) -> None:
        try:
            self._free.pop()
        except IndexError:
            self._wait()

    def release(self) -> None:
        self._free.append(None)
        if self._waiting > 0:
            self._raise_signal()

    def _raise_signal(self) -> None:
        try:
            self._signal.release()
        except RuntimeError:
            pass  # raised already and not yet taken: one waiter is waking up

    def _wait(self) -> None:
        with self._gate:
            self._waiting += 1
        while True:
            try:
                self._free.pop()
                break
            except IndexError:
                self._signal.acquire()
        with self._gate:
            self._waiting -= 1
