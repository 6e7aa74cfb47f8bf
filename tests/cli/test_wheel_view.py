"""The picture, drawn from fixed readings."""

from __future__ import annotations

import pytest
from rich.text import Text

from ixion.cli.wheel.reading import LevelReading, Reading
from ixion.cli.wheel.view import CAPTION, HAND, colour, compact, duration, goes, render, strip, way_down
from ixion.timer import LevelSnapshot, TimerSnapshot

NOW_MS = 1_000_003
TITLE = "500 tasks/s of 5 ms to 5 min, 25% cancelled"


def level(number: int, counts: tuple[int, ...], *, arrived: float = 0.0, fell_in: float = 0.0) -> LevelReading:
    tick_ms = 20 ** (number - 1)
    state = LevelSnapshot(
        level=number,
        tick_ms=tick_ms,
        span_ms=tick_ms * 20,
        current_ms=NOW_MS // tick_ms * tick_ms,
        hand=NOW_MS // tick_ms % 20,
        counts=counts,
        arrived=0,
        fell_in=0,
    )
    return LevelReading(state=state, arrived=arrived, fell_in=fell_in)


LEVELS = (
    level(1, (0, 1, 2, 0, *(0,) * 8, 3, 0, 0, 4, 0, 0, 0, 1), arrived=271.6, fell_in=210.4),
    level(2, (0, 8, 7, 6, 5, 4, 3, 2, 1, *(0,) * 11), arrived=255.2, fell_in=104),
    level(3, (0, *range(19, 0, -1)), arrived=125, fell_in=12.5),
    level(4, (9, 8, 7, 6, 5, 0, 80, 72, 64, 56, 48, 40, 32, 24, 16, 14, 13, 12, 11, 10), arrived=131),
    level(5, (0, 0, 0, 0, 0, 0, 0, 180, 91, *(0,) * 11), arrived=33),
)


def reading(levels: tuple[LevelReading, ...] = LEVELS, *, next_due_ms: int | None = NOW_MS + 9) -> Reading:
    timer = TimerSnapshot(
        name="wheel", now_ms=NOW_MS, size=1706, levels=tuple(each.state for each in levels),
        next_due_ms=next_due_ms, queued_buckets=51, added=4399, expired=1971, cancelled=722, fell=2346, failed=0,
    )  # fmt: skip
    return Reading(
        elapsed_seconds=9.04, timer=timer, levels=levels, added=500.1, ran=264.2, cancelled=96, fell=3.26,
        late_p50_ms=0.66, late_p99_ms=1.61, late_max_ms=13.49, cpu_percent=9.7, memory_bytes=38_400_000,
    )  # fmt: skip


def drawn(picture: Text) -> list[str]:
    return [line.rstrip() for line in picture.plain.split("\n")]


PICTURE = """\
 ixion wheel  500 tasks/s of 5 ms to 5 min, 25% cancelled      9 s · Ctrl-C ends
             ┃ hand   ▂▂▂▂▂▂▂▂▂▂ due next … due a turn later             waiting
 level 5                       ┃  ██ ▁▁                                      271
 160 s × 20  ▁▁ ▁▁ ▁▁ ▁▁ ▁▁ ▁▁ ┃  ██ ██ ▁▁ ▁▁ ▁▁ ▁▁ ▁▁ ▁▁ ▁▁ ▁▁ ▁▁ ▁▁ ▁▁   +33/s
 = 53 min                      ╰─▼ 180 fall to level 4 in 120 s
 level 4                    ┃  ██ ▇▇ ▅▅ ▄▄ ▂▂                                527
 8 s × 20    ▂▂ ▂▂ ▂▂ ▂▂ ▁▁ ┃  ██ ██ ██ ██ ██ ██ ▇▇ ▅▅ ▄▄ ▃▃ ▃▃ ▃▃ ▃▃ ▂▂  +131/s
 = 160 s                    ╰─▼ 80 fall to level 3 in 8 s
 level 3     ┃  ██ ██ ▇▇ ▆▆ ▅▅ ▄▄ ▃▃ ▃▃ ▂▂ ▁▁                                190
 400 ms × 20 ┃  ██ ██ ██ ██ ██ ██ ██ ██ ██ ██ ██ ▇▇ ▆▆ ▆▆ ▅▅ ▄▄ ▃▃ ▂▂ ▁▁  +125/s
 = 8 s       ╰─▼ 104/s fall to level 2
 level 2     ┃  ██ ▆▆ ▄▄ ▂▂                                                   36
 20 ms × 20  ┃  ██ ██ ██ ██ ██ ▆▆ ▄▄ ▂▂ ▁▁ ▁▁ ▁▁ ▁▁ ▁▁ ▁▁ ▁▁ ▁▁ ▁▁ ▁▁ ▁▁  +255/s
 = 400 ms    ╰─▼ 210/s fall to level 1
 level 1              ┃                          ▄▄       ██                  11
 1 ms × 20   ▁▁ ▄▄ ██ ┃  ▁▁ ▁▁ ▁▁ ▁▁ ▁▁ ▁▁ ▁▁ ▁▁ ██ ▁▁ ▁▁ ██ ▁▁ ▁▁ ▁▁ ▄▄  +272/s
 = 20 ms              ╰─▶ 264/s run

                   added        ran  cancelled       fell    late p50    0.7 ms
 a second            500        264         96        3.3    late p99    1.6 ms
 in all            4,399      1,971        722      2,346    late max   13.5 ms
 next bucket  due in 9 ms · 51 queued · 1,706 tasks wait · CPU 10 % · 38 MB

 Tasks wait in buckets. What a hand reaches falls to a finer level, then runs.
"""


def test_the_picture_at_80_by_24() -> None:
    picture = render(reading(), title=TITLE, width=80, height=24)
    assert drawn(picture) == PICTURE.split("\n")[:-1]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (60, 19), (100, 30), (132, 43), (250, 80)])
def test_it_fits_the_terminal_and_is_never_without_its_caption(width: int, height: int) -> None:
    lines = drawn(render(reading(), title=TITLE, width=width, height=height))
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    assert lines[-1] == f" {CAPTION}"[:width].rstrip()


def test_wider_and_higher_terminals_get_wider_and_higher_bars() -> None:
    small, large = (render(reading(), title="", width=w, height=h).plain.count("█") for w, h in ((80, 24), (160, 40)))
    assert large > 3 * small


def test_a_terminal_that_is_far_too_small_is_no_error() -> None:
    assert drawn(render(reading(), title=TITLE, width=10, height=3))[0] == " ixion whe"


def test_levels_that_are_not_made_yet_are_not_drawn() -> None:
    plain = render(reading(LEVELS[:2]), title="", width=80, height=24).plain
    assert "level 2" in plain
    assert "level 3" not in plain


def test_bars_rise_with_their_tasks_and_the_fullest_is_full() -> None:
    upper, lower = strip((0, 16, 8, 1, 0), 0, cell=2, rows=2)
    assert upper.plain == "┃ █       "
    assert lower.plain == "┃ █ █ ▁ ▁ "
    assert str(lower.spans[3].style) != str(lower.spans[4].style)  # one task, drawn in colour; none, drawn in grey


def test_a_lone_task_is_not_drawn_as_a_crowd() -> None:
    assert strip((0, 1, 0), 0, cell=1, rows=1)[0].plain == "┃▂▁"


def test_colours_count_from_the_hand_and_round_the_ring() -> None:
    line = strip((1, 1, 1, 1, 1), 2, cell=1, rows=1)[0]
    near, far = colour(0.0), colour(1.0)
    assert (near, far) == ("rgb(255,176,0)", "rgb(100,143,255)")
    assert [str(span.style) for span in line.spans] == [colour(2 / 3), far, HAND, near, colour(1 / 3)]


def test_the_way_down_starts_at_the_hand_and_stays_on_the_strip() -> None:
    assert way_down(2, 3, 40, "7/s fall to level 1").plain == "   ╰─▼ 7/s fall to level 1".ljust(40)
    assert way_down(2, 36, 40, "7/s fall to level 1").plain == "7/s fall to level 1 ▼─╯".rjust(37).ljust(40)
    assert way_down(1, 0, 20, "7/s run").plain == "╰─▶ 7/s run".ljust(20)


def test_slow_levels_count_down_to_their_next_bucket() -> None:
    left = 8 - NOW_MS % 8000 / 1000
    assert goes(LEVELS[3], reading()) == f"80 fall to level 3 in {left:.0f} s"
    assert goes(level(4, (0,) * 20), reading()) == "none to fall to level 3"
    assert goes(LEVELS[2], reading()) == "104/s fall to level 2"
    assert goes(LEVELS[0], reading()) == "264/s run"


def test_an_empty_queue_has_no_next_bucket() -> None:
    assert "next bucket  none · 51 queued" in render(reading(next_due_ms=None), title="", width=80, height=24).plain


def test_numbers_and_durations_are_short() -> None:
    assert [compact(n) for n in (0, 5, 5.0, 0.42, 9.96, 126, 9898, 9999.6, 20_012, 999_600)] == [
        "0", "5", "5.0", "0.4", "10", "126", "9,898", "10k", "20k", "1.0M",
    ]  # fmt: skip
    assert [duration(ms) for ms in (1, 400, 8000, 160_000, 3_200_000)] == ["1 ms", "400 ms", "8 s", "160 s", "53 min"]
