"""Many threads add and cancel while one advances: nothing is lost and nothing runs twice."""

from __future__ import annotations

import random
import threading

from ixion.timer import SystemTimer, TimerTask

THREADS = 6
TASKS = 1_500


class Counted(TimerTask):
    def __init__(self, delay_ms: int) -> None:
        super().__init__(delay_ms)
        self.runs = 0

    def run(self) -> None:
        self.runs += 1


def test_every_task_is_run_or_cancelled_exactly_once() -> None:
    timer = SystemTimer("hammer", wheel_size=4)  # small, so that tasks fall through many levels
    stop = threading.Event()
    tasks: list[list[Counted]] = [[] for _ in range(THREADS)]
    taken_out: list[Counted] = []

    def advance() -> None:
        while not stop.is_set():
            timer.advance_clock(5)

    def cancel(task: Counted) -> None:
        if task.cancel():
            taken_out.append(task)

    def work(number: int) -> None:
        rng = random.Random(number)
        mine = tasks[number]
        for _ in range(TASKS):
            task = Counted(rng.randrange(-2, 60))
            mine.append(task)
            timer.add(task)
            if rng.random() < 0.5:
                cancel(rng.choice(mine))
            if rng.random() < 0.1:
                cancel(rng.choice(tasks[(number + 1) % THREADS] or mine))  # another's, perhaps not even added yet

    advancing = threading.Thread(target=advance)
    workers = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in [advancing, *workers]:
        thread.start()
    for thread in workers:
        thread.join()
    while timer.size:
        threading.Event().wait(0.005)
    stop.set()
    advancing.join()
    timer.shutdown()

    seen = timer.snapshot()
    everyone = [task for mine in tasks for task in mine]
    ran = [task for task in everyone if task.runs]
    refused = set(everyone) - set(ran) - set(taken_out)
    assert all(task.runs == 1 for task in ran)
    assert len(set(taken_out)) == len(taken_out) == seen.cancelled
    assert set(ran).isdisjoint(taken_out)
    assert len(ran) == seen.expired
    assert seen.added + len(refused) == len(everyone) == THREADS * TASKS
    assert all(task.cancelled for task in refused)  # before they were added


def test_adding_again_from_many_threads_runs_each_task_for_its_last_add() -> None:
    timer = SystemTimer("again")
    task = Counted(20)
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        for _ in range(3_000):
            timer.add(task)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for thread in workers:
        thread.start()
    while any(thread.is_alive() for thread in workers):
        assert timer.size <= 1
        timer.advance_clock(1)
    for thread in workers:
        thread.join()
    while timer.size:
        timer.advance_clock(50)
    timer.shutdown()
    assert task.runs >= 1
    assert timer.snapshot().expired == task.runs
