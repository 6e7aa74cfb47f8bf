"""The one thread that runs expired tasks: a slow task delays other tasks, but not the clock."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue

from ixion.timer.task import TimerTask

log = logging.getLogger(__name__)


class Worker:
    """Starts with the first tasks; `stop` ends it after the tasks it has."""

    def __init__(self, name: str, run_task: Callable[[TimerTask], None]) -> None:
        self._name = name
        self._run_task = run_task
        self._batches: SimpleQueue[list[TimerTask] | None] = SimpleQueue()
        self._lock = threading.Lock()  # guards _runner and _stopped
        self._runner: threading.Thread | None = None
        self._stopped = False

    def submit(self, tasks: list[TimerTask]) -> None:
        if self._runner is None:
            self._start()
        self._batches.put(tasks)

    def stop(self) -> None:
        with self._lock:
            thread, self._runner = self._runner, None
            self._stopped = True
        if thread is not None:
            self._batches.put(None)
            if thread is not threading.current_thread():
                thread.join()

    def _start(self) -> None:
        with self._lock:
            if self._runner is None and not self._stopped:
                self._runner = threading.Thread(target=self._work, name=f"executor-{self._name}", daemon=True)
                self._runner.start()

    def _work(self) -> None:
        while True:
            batch = self._batches.get()
            if batch is None:
                return
            for task in batch:
                try:
                    self._run_task(task)
                except BaseException:  # SystemExit and the like end this task, not the thread that runs all tasks
                    log.exception("timer %s: task %s raised", self._name, task.describe())
