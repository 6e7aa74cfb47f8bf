"""An operation that waits for a condition, with a timeout.

It completes exactly once: because its condition holds (`try_complete`), because a caller forces it (`force_complete`),
or because of its timeout (the timer calls `run`). The first of these calls `on_complete`; the others get False. After a
timeout `on_expiration` is called too.

How no wake-up is lost. Checking the condition takes a try-lock, so that a thread does not wait while another one is
checking. That alone would lose wake-ups:

    1. thread a holds the try-lock and finds that the condition does not hold
    2. thread b makes it true and tries to check, but cannot get the try-lock and returns
    3. thread a releases it and returns too; no thread checks again, and the operation waits for its timeout

So b sets `_pending` before it returns. The thread that releases the try-lock reads `_pending` in the same step and, if
it is set, checks once more. Rule for the caller: make the condition true first, then call `safe_try_complete`. Then
either this call checks it, or a check of another thread does that started after your change.

One mutex guards the flags of all operations. It is held for a few instructions and never while other code runs: cheaper
than a lock in each operation, in time and in memory.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Final, SupportsIndex

from ixion._native import mypyc_attr
from ixion.timer.mutex import Mutex
from ixion.timer.task import TimerTask, cancel

if TYPE_CHECKING:
    from ixion.purgatory.purgatory import DelayedOperationPurgatory

FLAGS: Final = Mutex()


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedOperation(TimerTask):
    """Subclass it; write `try_complete` and `on_complete`, and `on_expiration` if the timeout matters."""

    __slots__ = ("_checking", "_completed", "_dropped", "_pending", "_purgatory")

    def __init__(self, delay_ms: SupportsIndex) -> None:
        super().__init__(delay_ms)
        self._completed = False
        self._dropped = False  # abandoned, or removed from its watch lists by cancel_for_key
        self._checking = False  # the try-lock
        self._pending = False  # a thread wanted to check while another one was checking
        self._purgatory: DelayedOperationPurgatory | None = None  # set while it counts as delayed there

    def try_complete(self) -> bool:
        """Check the condition; if it holds, `return self.force_complete()`. Never called by two threads at once."""
        raise NotImplementedError(f"{type(self).__qualname__} needs a try_complete() method")

    def try_complete_for(self, key: Hashable) -> bool:  # noqa: ARG002 (for subclasses)
        """As `try_complete`, after an event of this key. Override it if checking all keys is expensive."""
        return self.try_complete()

    def on_complete(self) -> None:
        """Do the delayed work. Called exactly once, by the thread that completes the operation."""
        raise NotImplementedError(f"{type(self).__qualname__} needs an on_complete() method")

    def on_expiration(self) -> None:
        """Called after `on_complete`, only if the timeout completed the operation: for example to count timeouts.

        `on_complete` has sent the response by then. So store the timeout error as the default result, and clear it in
        `try_complete`.
        """

    @property
    def completed(self) -> bool:
        return self._completed

    def force_complete(self) -> bool:
        """Complete the operation now, even if its condition does not hold. False if it was completed before."""
        if not leave(self, True):
            return False
        cancel(self)
        self.on_complete()
        return True

    def safe_try_complete(self) -> bool:
        """`try_complete`, by one thread at a time and without losing a wake-up. True if this call completed it."""
        return safe_try_complete(self)

    def run(self) -> None:
        """Called by the timer at the timeout."""
        if self.force_complete():
            self.on_expiration()


# Functions, because compiled code calls these directly, whatever Python class the operation has. A method of a class
# that Python code may subclass is looked up by name at each call, which costs more than the work of these functions.


def safe_try_complete(operation: DelayedOperation, key: Hashable | None = None) -> bool:
    """`key`: check only this key; None: check all."""
    while True:
        FLAGS.acquire()
        if operation._checking:
            operation._pending = True
            FLAGS.release()
            return False
        operation._checking = True
        operation._pending = False
        FLAGS.release()
        try:
            done = operation.try_complete() if key is None else operation.try_complete_for(key)
        finally:
            FLAGS.acquire()
            operation._checking = False
            again = operation._pending
            FLAGS.release()
        if done or operation._completed or not again:
            return done
        key = None  # the check that set `_pending` may have been for another key


def abandon(operation: DelayedOperation) -> bool:
    """Stop waiting without completing. False if it was completed or dropped before.

    The operation stays in its watch lists until they are checked or purged, so it should drop its references.
    """
    if operation._dropped or not leave(operation, False):
        return False
    cancel(operation)
    return True


def leave(operation: DelayedOperation, completed: bool) -> bool:
    """Mark the operation as completed, or else dropped, and no longer delayed. False if it was completed before."""
    FLAGS.acquire()
    first = not operation._completed
    if completed:
        operation._completed = True
    else:
        operation._dropped = True
    purgatory = operation._purgatory
    if purgatory is not None:
        purgatory._delayed -= 1
        operation._purgatory = None
    FLAGS.release()
    return first
