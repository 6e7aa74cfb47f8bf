"""An operation that waits for a condition, but not for ever.

It completes exactly once: because its condition holds (`try_complete`), because a caller forces it (`force_complete`),
or because its time is up (the timer calls `run`). The first of them runs `on_complete`; the others get False.
`on_expiration` follows only when it was the timer.

How no wake-up is lost. Checking the condition takes a try-lock, so that a thread which finds another one already
checking does not queue up behind it. That alone would lose wake-ups:

    1. thread a holds the try-lock and finds the condition not met
    2. thread b makes it true and comes to check, but cannot get the try-lock and leaves
    3. thread a releases it and leaves too; no thread checks again, and the operation waits for its timeout

So b sets `_pending` before it leaves. The thread that releases the try-lock reads `_pending` in the same step and, if
it is set, checks once more. Rule for the caller: make the condition true first, then call `safe_try_complete`; either
your call checks it or another thread's check does, which started after your change.

The flags of all operations are guarded by one mutex that is held for a few instructions and never while foreign code
runs: cheaper than a lock in each operation, in time and in memory.
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
        self._dropped = False  # it was abandoned, or taken off its watch lists by cancel_for_key
        self._checking = False  # the try-lock
        self._pending = False  # a thread wanted to check while another one did
        self._purgatory: DelayedOperationPurgatory | None = None  # set while it counts as delayed there

    def try_complete(self) -> bool:
        """Check the condition; if it holds, `return self.force_complete()`. Never called by two threads at once."""
        raise NotImplementedError(f"{type(self).__qualname__} needs a try_complete() method")

    def try_complete_for(self, key: Hashable) -> bool:  # noqa: ARG002 (for subclasses)
        """As `try_complete`, after an event of this key. Override it where looking at all keys is expensive."""
        return self.try_complete()

    def on_complete(self) -> None:
        """Do what the operation was waiting to do. Called exactly once, by the thread that completes it."""
        raise NotImplementedError(f"{type(self).__qualname__} needs an on_complete() method")

    def on_expiration(self) -> None:
        """Called after `on_complete`, and only when the timeout completed the operation: the place to count timeouts.

        What the answer says about a timeout is decided before: set it as the default and clear it in `try_complete`.
        """

    @property
    def completed(self) -> bool:
        return self._completed

    def force_complete(self) -> bool:
        """Complete the operation now, whether its condition holds or not. False if it was completed before."""
        if not leave(self, True):
            return False
        cancel(self)
        self.on_complete()
        return True

    def safe_try_complete(self) -> bool:
        """`try_complete`, by one thread at a time and without losing a wake-up. True if this call completed it."""
        return safe_try_complete(self)

    def run(self) -> None:
        """The timer's call: the time is up."""
        if self.force_complete():
            self.on_expiration()


# Functions, because compiled code calls these directly, whatever Python class the operation has; a method of a class
# that Python code may subclass is looked up by name each time, which costs more than what these do.


def safe_try_complete(operation: DelayedOperation, key: Hashable | None = None) -> bool:
    """`key`: the event that is the reason to look; None looks at everything."""
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
        key = None  # the check that left the note may have been for another key


def abandon(operation: DelayedOperation) -> bool:
    """Stop waiting without completing. False if it was over before.

    The operation stays in its watch lists until they are checked or purged, so it should let go of what it holds.
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
