"""Functions instead of task classes: calling later, changing one's mind, doing something over and over.

Prints:

    tick 1
    tick 2
    tick 3
    good night
    ran 4, cancelled 1
"""

from ixion.timer import SystemTimer, TimerTask

# By default a worker thread runs the tasks. With this executor the thread that turns the wheel runs them itself: right
# for short functions, and then `timer.size` says truly whether anything is still to come.
timer = SystemTimer("demo", executor=lambda task: task.run())


def tick(number: int) -> None:
    print(f"tick {number}")
    if number < 3:
        timer.call_later(50, tick, number + 1)  # the next one, 50 ms from now


timer.call_later(50, tick, 1)
timer.call_later(1000, print, "good night")

# A timeout for something that finishes in time. Cancelling costs the same whether ten tasks wait or ten million.
timeout: TimerTask = timer.call_later(500, print, "that took too long")
assert timeout.cancel()

while timer.size:
    timer.advance_clock(200)
timer.shutdown()

totals = timer.snapshot()
print(f"ran {totals.expired}, cancelled {totals.cancelled}")
