"""The smallest timer: one task, run 450 ms from now.

Prints:

    450 ms from now: hello
    hello
    0 tasks wait
"""

from ixion.timer import SystemTimer, TimerTask


class Hello(TimerTask):
    """A task is what to do (`run`) and when (`delay_ms`)."""

    def run(self) -> None:
        print("hello")


timer = SystemTimer("demo")
task = Hello(delay_ms=450)
timer.add(task)
print(f"{task.delay_ms} ms from now: hello")

# A thread has to turn the wheel. Each call sleeps until the next bucket of tasks is due, but at most 200 ms, and hands
# what is due to the timer's worker thread. In a real program this loop has a thread of its own.
while timer.size:
    timer.advance_clock(200)

task.cancel()  # too late, and harmless
timer.shutdown()  # waits for the worker to finish what it was given
print(f"{timer.size} tasks wait")
