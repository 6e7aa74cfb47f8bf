"""Sends OpenLineage's events to a server or into a file. A server that does not answer never stops a pipeline.

Events wait in a short queue for a thread, which ends with the run. Events that the queue cannot hold, or the server
does not accept, are dropped and counted; the first reason is given to COMPLAIN.
"""

from __future__ import annotations

import json
import queue
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from ixion.pipelines.secret_requests import open_url
from ixion.pipelines.spec.lineage import LineageSpec

WAITING: Final = 100  # events
TIMEOUT_S: Final = 5.0
LAST_S: Final = 15.0  # for the events that still wait at the end of a run

Event = dict[str, Any]


class EventSender:
    def __init__(self, spec: LineageSpec, complain: Callable[[str], None]) -> None:
        self._spec: Final = spec
        self._complain: Final = complain
        self._waiting: Final[queue.Queue[Event | None]] = queue.Queue(WAITING)
        self._thread: Final = threading.Thread(target=self._send_all, name="pipeline-lineage", daemon=True)
        self.dropped = 0

    def __enter__(self) -> EventSender:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Wait for queued events, at most LAST_S."""
        try:
            self._waiting.put(None, timeout=LAST_S)
        except queue.Full:
            self._drop("the server does not keep up")
        self._thread.join(LAST_S)

    def send(self, event: Event) -> None:
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            self._drop("the server does not keep up")

    def _send_all(self) -> None:
        while (event := self._waiting.get()) is not None:
            try:
                self._send(json.dumps(event))
            except (OSError, ValueError) as error:
                self._drop(str(getattr(error, "reason", None) or error))

    def _send(self, text: str) -> None:
        spec = self._spec
        if spec.file:
            path = Path(spec.file)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(f"{text}\n")
            return
        headers = {"Content-Type": "application/json"}
        if spec.api_key:
            headers["Authorization"] = f"Bearer {spec.api_key}"
        url = f"{spec.url.rstrip('/')}/{spec.endpoint}"
        request = urllib.request.Request(url, text.encode(), headers, method="POST")  # noqa: S310 - http(s) only
        with open_url(request, TIMEOUT_S):
            pass

    def _drop(self, reason: str) -> None:
        self.dropped += 1
        if self.dropped == 1:
            self._complain(f"lineage events are not accepted by {self._spec.file or self._spec.url}: {reason}")
