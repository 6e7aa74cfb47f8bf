"""The worked examples of the wheel's behaviour, each as a scenario file."""

from __future__ import annotations

from pathlib import Path

import pytest

from devtools.scenarios import check
from ixion.timer import ManualClock, SystemTimer, TimerTask

FILES = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


class Stage:
    """Plays one scenario: `timer`, `add`, `cancel`, `advance`, `clock`, `hands`, `queue`."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.tasks: dict[str, Named] = {}
        self.make(1, 20, 0)

    def make(self, tick_ms: int, wheel_size: int, start_ms: int) -> None:
        self.clock = ManualClock(start_ms)
        self.timer = SystemTimer(
            "scenario", tick_ms=tick_ms, wheel_size=wheel_size, clock=self.clock, executor=lambda task: task.run()
        )

    def run(self, words: list[str]) -> list[str]:
        self.lines = []
        command, *args = words
        getattr(self, f"do_{command}")(*args)
        return self.lines

    def do_timer(self, tick_ms: str, wheel_size: str, start_ms: str) -> None:
        self.make(int(tick_ms), int(wheel_size), int(start_ms))

    def do_add(self, name: str, delay_ms: str = "0") -> None:
        task = self.tasks.get(name)
        if task is None:
            task = self.tasks[name] = Named(self, name, int(delay_ms))
        if self.timer.add(task):
            self.lines.append(self.place(task))
        elif task.cancelled:
            self.lines.append(f"{name} refused")

    def do_cancel(self, name: str) -> None:
        self.lines.append(f"{name} {'taken out' if self.tasks[name].cancel() else 'was not waiting'}")

    def do_advance(self, ms: str) -> None:
        """The time passes; then the timer is turned once."""
        self.clock.advance(int(ms))
        if not self.timer.advance_clock(0):
            self.lines.append("the clock did not move")
        self.lines.extend(self.place(task) for task in self.tasks.values() if task.waiting)

    def do_hands(self) -> None:
        for level in self.timer.snapshot().levels:
            self.lines.append(f"level {level.level}: tick {level.tick_ms} span {level.span_ms} at {level.current_ms}")

    def do_queue(self) -> None:
        seen = self.timer.snapshot()
        self.lines.append(f"{seen.queued_buckets} queued, next due {seen.next_due_ms}, {seen.size} waiting")

    def place(self, task: Named) -> str:
        level, wheel = 1, self.timer._core.wheel
        while task._bucket not in wheel.buckets:
            assert wheel.overflow is not None
            level, wheel = level + 1, wheel.overflow
        assert task._bucket is not None
        start = task._bucket.expiration_ms
        return f"{task.name} on level {level} in [{start}, {start + wheel.tick_ms})"


class Named(TimerTask):
    def __init__(self, stage: Stage, name: str, delay_ms: int) -> None:
        super().__init__(delay_ms)
        self.stage = stage
        self.name = name

    def run(self) -> None:
        self.stage.lines.append(f"{self.name} runs at {self.stage.clock.now_ms}")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    stage = Stage()
    check(path, stage.run)
    stage.timer.shutdown()
