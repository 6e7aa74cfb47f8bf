"""A timer that an event loop owns: no thread and no lock, the loop sleeps until the next bucket is due.

A server closes sessions that have been silent for too long. Every heartbeat puts the end off, by adding the same
task again: that moves it, at a cost that does not depend on how many sessions there are.

Prints:

    ada: heartbeat
    ada: heartbeat
    ada: heartbeat
    bob: closed after 200 ms of silence
    ada: closed after 800 ms of silence
"""

import asyncio

from ixion.timer import LoopTimer, TimerTask


class Session(TimerTask):
    def __init__(self, client: str, silence_ms: int) -> None:
        super().__init__(silence_ms)
        self.client = client
        self.closed = asyncio.Event()

    def run(self) -> None:
        """Called on the loop, so it may touch what belongs to the loop."""
        print(f"{self.client}: closed after {self.delay_ms} ms of silence")
        self.closed.set()


async def main() -> None:
    timer = LoopTimer("sessions")  # on the loop that is running
    ada, bob = Session("ada", silence_ms=800), Session("bob", silence_ms=200)
    timer.add(ada)
    for _ in range(3):
        await asyncio.sleep(0.02)
        print("ada: heartbeat")
        timer.add(ada)  # 800 ms from now, not from before
    timer.add(bob)
    await bob.closed.wait()
    await ada.closed.wait()
    timer.shutdown()


asyncio.run(main())
