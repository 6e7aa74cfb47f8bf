"""A long poll: a reader waits for the next line of a log, but not for ever; an append wakes it.

This is how a broker answers a fetch. Nothing polls: the fetch waits in a purgatory under a key, and the code that
changes what the key stands for completes it.

Prints:

    from line 0: ['to be']
    from line 1: nothing yet, waiting
    from line 1: ['or not']
    the append of 'or not' woke 1 fetch
    from line 2: nothing yet, waiting
    from line 2: []
    1 fetch timed out
"""

import threading

from ixion.purgatory import DelayedOperation, DelayedOperationPurgatory

lines: list[str] = []
purgatory = DelayedOperationPurgatory("fetch")  # brings its own timer, and a thread that turns its wheel
timed_out: list[str] = []


class Fetch(DelayedOperation):
    """Completes when there is a line to read, or after `max_wait_ms` with nothing: exactly once, either way."""

    def __init__(self, start: int, max_wait_ms: int) -> None:
        super().__init__(max_wait_ms)
        self.start = start
        self.answer: list[str] = []
        self.answered = threading.Event()

    def try_complete(self) -> bool:
        """Asked when the fetch arrives and after every append."""
        return len(lines) > self.start and self.force_complete()

    def on_complete(self) -> None:
        """Runs once, in the reader, in the thread that appended, or in the timer."""
        self.answer = lines[self.start :]
        self.answered.set()

    def on_expiration(self) -> None:
        """Afterwards, if it was the timer."""
        timed_out.append(f"from line {self.start}")


waiting = threading.Event()


def read(start: int, max_wait_ms: int) -> None:
    fetch = Fetch(start, max_wait_ms)
    if not purgatory.try_complete_else_watch(fetch, ["the log"]):
        print(f"from line {start}: nothing yet, waiting")
        waiting.set()
        fetch.answered.wait()
    print(f"from line {start}: {fetch.answer}")


def append(line: str) -> int:
    """The change first, then the news of it. Returns how many fetches it completed."""
    lines.append(line)
    return purgatory.check_and_complete("the log")


append("to be")
read(0, max_wait_ms=60_000)  # there is something to read: answered at once

reader = threading.Thread(target=read, args=(1, 60_000))
reader.start()
waiting.wait()
woken = append("or not")
reader.join()
print(f"the append of 'or not' woke {woken} fetch")

read(2, max_wait_ms=100)  # nobody appends: the timer answers

purgatory.shutdown()
print(f"{len(timed_out)} fetch timed out")
