"""The thread that advances a purgatory's clock."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)

RETRY_SECONDS = 0.2


class Reaper:
    """Calls `work` repeatedly until it is stopped; an exception is logged, and the thread continues."""

    def __init__(self, name: str, work: Callable[[], object]) -> None:
        self._work = work
        self._stopped = threading.Event()
        self._runner = threading.Thread(target=self._run, name=name, daemon=True)
        self._runner.start()

    def stop(self) -> None:
        self._stopped.set()

    def join(self) -> None:
        if self._runner is not threading.current_thread():
            self._runner.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._work()
            except Exception:
                log.exception("%s: the clock could not be advanced; continuing", self._runner.name)
                self._stopped.wait(RETRY_SECONDS)
