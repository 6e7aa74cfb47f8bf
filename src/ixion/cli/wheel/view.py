"""`ixion wheel` as a picture: each level of the wheel a strip of buckets, the coarsest on top.

    level 3      ▁▁ ▁▁ ┃  ██ ▆▆ ▅▅ ▂▂ ▁▁ …        437     a column is a bucket, its height the tasks in it;
    400 ms × 20        ╰─▼ 129/s fall to level 2  +126/s     how many wait here, how many arrive in a second

The strip is a ring rolled out: the hand walks to the right and starts again at the left. The bucket under it has
just been emptied. Colours tell how far ahead of the hand a bucket is: amber is next, blue has nearly a whole turn to
wait. Pure: a reading and a size in, text out.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from ixion.cli.wheel.lines import per_second, process
from ixion.cli.wheel.reading import LevelReading, Reading

CAPTION = "Tasks wait in buckets. What a hand reaches falls to a finer level, then runs."
BLOCKS = " ▁▂▃▄▅▆▇█"
LABEL_WIDTH = 13
COUNT_WIDTH = 7
OTHER_LINES = 9  # everything but the strips: title, figures, caption and the blank lines between them
SLOW_TICK_MS = 1000
FULL_SCALE = 4  # tasks in a bucket that fill it, at least: a lone task is not drawn as a crowd

# Five colours that stay apart for colour-blind eyes; those between are mixed.
NEAR_TO_FAR = ((255, 176, 0), (254, 97, 0), (220, 38, 127), (120, 94, 240), (100, 143, 255))
HAND = "bold"
QUIET = "dim"
STRONG = "bold not dim"
FALL = "rgb(254,97,0)"
RUN = "bold rgb(255,176,0)"


def render(reading: Reading, *, title: str, width: int, height: int) -> Text:
    """The whole screen."""
    levels = reading.levels
    size = len(levels[0].state.counts)
    cell = min(max((width - LABEL_WIDTH - COUNT_WIDTH) // size, 1), 8)
    rows = min(max((height - OTHER_LINES) // len(levels) - 1, 1), 4)
    used = LABEL_WIDTH + cell * size + COUNT_WIDTH
    lines = [heading(title, reading.elapsed_seconds, used), legend(used)]
    for level in reversed(levels):
        lines += level_lines(level, goes(level, reading), cell=cell, rows=rows)
    lines += [Text(), *figures(reading), Text(), Text(" " + CAPTION, style="italic")]
    for text in lines:
        text.truncate(width)
    return Text("\n", no_wrap=True, overflow="crop", end="").join(lines)


def heading(title: str, elapsed_seconds: float, width: int) -> Text:
    line = Text(" ixion wheel", style=RUN).append(f"  {title}", style="not bold default")
    return line.append(f"{elapsed_seconds:.0f} s · Ctrl-C ends".rjust(width - len(line)), style="not bold default")


def legend(width: int) -> Text:
    line = Text(" " * LABEL_WIDTH, style=QUIET).append("┃", style=HAND).append(" hand   ")
    for step in range(10):
        line.append("▂", style=colour(step / 9))
    line.append(" due next … due a turn later")
    return line.append("waiting".rjust(width - len(line)))


def goes(level: LevelReading, reading: Reading) -> str:
    """What becomes of the tasks in the bucket that the hand reaches next."""
    state = level.state
    if state.level == 1:
        return f"{per_second(reading.ran)}/s run"
    to = f"fall to level {state.level - 1}"
    if state.tick_ms <= SLOW_TICK_MS:
        return f"{per_second(reading.levels[state.level - 2].fell_in)}/s {to}"
    # A rate means little where a bucket falls every few seconds or minutes; a countdown does.
    size = len(state.counts)
    for ahead in range(1, size):
        count = state.counts[(state.hand + ahead) % size]
        if count:
            left_ms = max(0, state.current_ms + ahead * state.tick_ms - reading.timer.now_ms)
            return f"{count:,} {to} in {left_ms / 1000:.0f} s"
    return f"none to {to}"


def level_lines(level: LevelReading, words: str, *, cell: int, rows: int) -> list[Text]:
    """A level: its strip, `rows` high, and the line below it, where what the hand has reached goes down."""
    state = level.state
    labels = [
        f"level {state.level}",
        f"{duration(state.tick_ms)} × {len(state.counts)}",
        f"= {duration(state.span_ms)}",
    ]
    counts = [compact(sum(state.counts)), f"+{compact(level.arrived)}/s"]
    lines = strip(state.counts, state.hand, cell=cell, rows=rows)
    hand_column = state.hand * cell + middle(max(cell - 1, 1))
    lines.append(way_down(state.level, hand_column, len(state.counts) * cell, words))
    for index, text in enumerate(lines):
        label = labels[index] if index < len(labels) else ""
        count = counts[index] if index < len(counts) else ""
        line = Text(f" {label:<{LABEL_WIDTH - 1}}", style=STRONG if index == 0 else QUIET)
        line.append_text(text)
        line.append(f"{count:>{COUNT_WIDTH}}", style=STRONG if index == 0 else QUIET)
        lines[index] = line
    return lines


def strip(counts: Sequence[int], hand: int, *, cell: int, rows: int) -> list[Text]:
    """The buckets as columns of blocks, `rows` lines high, each `cell` characters wide with the gap to the next."""
    bar = max(cell - 1, 1)
    gap = " " * (cell - bar)
    full = max(FULL_SCALE, *counts)
    lines = [Text() for _ in range(rows)]
    for index, count in enumerate(counts):
        ahead = (index - hand) % len(counts)
        eighths = -(-count * rows * 8 // full)  # rounded up: where there is a task, there is a trace of it
        for row, line in enumerate(lines):
            if ahead == 0:
                line.append(" " * middle(bar) + "┃".ljust(cell - middle(bar)), style=HAND)
            elif eighths == 0:
                line.append(("▁" if row == rows - 1 else " ") * bar + gap, style=QUIET)
            else:
                block = BLOCKS[min(max(eighths - 8 * (rows - 1 - row), 0), 8)]
                line.append(block * bar + gap, style=colour((ahead - 1) / (len(counts) - 2)))
    return lines


def middle(bar: int) -> int:
    """Where in a bar of this width the hand is drawn."""
    return (bar - 1) // 2


def way_down(level: int, hand_column: int, width: int, words: str) -> Text:
    """The line under a strip: from the hand, down to the next level or, from the finest one, out."""
    style = RUN if level == 1 else FALL
    arrow = "▶" if level == 1 else "▼"
    line = Text()
    if hand_column + len(words) + 4 <= width:
        line.append(" " * hand_column)
        line.append("╰", style=HAND)
        line.append(f"─{arrow} {words}", style=style)
    else:
        line.append(f"{words} {arrow}─".rjust(hand_column), style=style)
        line.append("╯", style=HAND)
    line.append(" " * (width - len(line)))
    return line


def figures(reading: Reading) -> list[Text]:
    """The table of rates, totals and lateness, and a line on the queue and the process."""
    timer = reading.timer
    names = ("added", "ran", "cancelled", "fell")
    rates = (reading.added, reading.ran, reading.cancelled, reading.fell)
    totals = (timer.added, timer.expired, timer.cancelled, timer.fell)
    late = (("p50", reading.late_p50_ms), ("p99", reading.late_p99_ms), ("max", reading.late_max_ms))
    table = [
        ("", names, QUIET),
        ("a second", [per_second(rate) for rate in rates], STRONG),
        ("in all", [f"{total:,}" for total in totals], STRONG),
    ]
    lines = []
    for (name, values, style), (part, ms) in zip(table, late, strict=True):
        line = Text(f" {name:<{LABEL_WIDTH - 1}}", style=QUIET)
        line.append("".join([f"{value:>11}" for value in values]), style=style)
        line.append(f"    late {part} ", style=QUIET).append(f"{ms:.1f} ms".rjust(9), style=STRONG)
        lines.append(line)
    waiting = Text(" next bucket  ", style=QUIET)
    if timer.next_due_ms is None:
        waiting.append("none")
    else:
        waiting.append("due in ").append(f"{max(0, timer.next_due_ms - timer.now_ms)} ms", style=STRONG)
    waiting.append(f" · {timer.queued_buckets} queued · ").append(f"{timer.size:,}", style=STRONG)
    waiting.append(f" tasks wait · {process(reading)}")
    return [*lines, waiting]


def colour(far: float) -> str:
    """From the next bucket (0.0) to the one a whole turn away (1.0)."""
    place = far * (len(NEAR_TO_FAR) - 1)
    index = min(int(place), len(NEAR_TO_FAR) - 2)
    share = place - index
    red, green, blue = [
        round(near + (later - near) * share)
        for near, later in zip(NEAR_TO_FAR[index], NEAR_TO_FAR[index + 1], strict=True)
    ]
    return f"rgb({red},{green},{blue})"


def compact(number: float) -> str:
    """At most five characters: 5 tasks, 0.4 a second, 126, 9,898, 20k, 1.2M."""
    if number < 9_999.5:
        return f"{number:,}" if isinstance(number, int) else per_second(number)
    return f"{number / 1000:.0f}k" if number < 999_500 else f"{number / 1e6:.1f}M"


def duration(ms: int) -> str:
    """Short: 20 ms, 8 s, 160 s, 53 min."""
    if ms < 1000:
        return f"{ms} ms"
    return f"{ms // 1000} s" if ms < 600_000 else f"{ms // 60_000} min"
