"""Describes where a thread with an event loop hangs, for the error of a wait that took too long."""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from typing import Final

SHOWN: Final = 10  # tasks; a broker has a few, besides those of requests


def where_it_is(thread: threading.Thread | None, loop: asyncio.AbstractEventLoop | None, doing: str) -> str:
    """One line: what the broker was doing, where its thread is, and where each of its tasks waits."""
    found = [f"it is {doing}"] if doing else []
    frame = None if thread is None or thread.ident is None else sys._current_frames().get(thread.ident)
    if frame is not None:
        found.append(f"its thread is at {_places(traceback.extract_stack(frame))}")
    if loop is not None:
        tasks = sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name())
        for task in tasks[:SHOWN]:
            frames = task.get_stack(limit=1)
            place = _places(traceback.extract_stack(frames[0], limit=1)) if frames else "its end"
            found.append(f"task {task.get_name()} waits at {place}")
        if len(tasks) > SHOWN:
            found.append(f"{len(tasks) - SHOWN} more tasks")
    return "; ".join(found) or "nothing is known of its thread"


def _places(stack: traceback.StackSummary) -> str:
    """The innermost three frames, innermost first."""
    return " in ".join(f"{entry.filename}:{entry.lineno} ({entry.name})" for entry in reversed(stack[-3:]))
