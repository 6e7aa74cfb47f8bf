"""Reads the headers of one record with which a producer asks for later delivery.

| header | value |
|---|---|
| `x-deliver-after-ms` | milliseconds from the append, by the broker's clock |
| `x-deliver-at` | milliseconds since 1970, or an RFC 3339 time; a past time means now |
| `x-schedule-id` | up to 255 bytes; a later record with the same id replaces this one |
| `x-schedule-cancel` | an id, or `@` and the offset of a record, or `*` for all; this record is never delivered |
| `x-schedule-every`, `x-schedule-cron` | deliver it again and again; needs an id (`recurrence`) |
| `x-schedule-tz`, `x-schedule-until` | the time zone of a cron expression; the latest time at which it may be due |

A number is text, or eight bytes, big-endian. Eight printable bytes are text: as a number they would be a time
beyond every limit. Case does not matter in names. An unknown header that starts with `x-deliver-` or `x-schedule` is an
error, because a record delivered too early cannot be taken back.

The broker adds headers of its own (`OWN`) to the records it delivers. It removes them from records that it receives,
because a producer may forward a record that was delivered to it.
"""

from __future__ import annotations

from typing import Final, final

from ixion._native import i64, mypyc_attr
from ixion.language.records.recurrence import cron_fault, every_ms_of, next_due
from ixion.language.records.walker import Walker

DELIVER: Final = b"x-deliver-"
SCHEDULE: Final = b"x-schedule"
AFTER: Final = b"x-deliver-after-ms"
AT: Final = b"x-deliver-at"
ID: Final = b"x-schedule-id"
CANCEL: Final = b"x-schedule-cancel"
FOR: Final = b"x-scheduled-for"
OFFSET: Final = b"x-schedule-offset"
CREATED: Final = b"x-schedule-created"
NEXT: Final = b"x-schedule-next"
TOPIC: Final = b"x-schedule-topic"
OWN: Final = (FOR, OFFSET, CREATED, NEXT, TOPIC)
EVERY: Final = b"x-schedule-every"
CRON: Final = b"x-schedule-cron"
ZONE: Final = b"x-schedule-tz"
UNTIL: Final = b"x-schedule-until"

MOST_ID_BYTES: Final = 255
MOST_DIGITS: Final = 19  # in a 64-bit number
MOST_TIME_BYTES: Final = 40  # in a time as text
ALL: Final = b"*"
MAX_I64: Final = 0x7FFFFFFFFFFFFFFF


@final
@mypyc_attr(acyclic=True)
class Wish:
    """The delivery that the headers of one record ask for.

    `due_ms` is -1 for a record that is delivered at once; `cancel` is empty unless the record cancels others. If both
    are unset, the record only has headers of the broker to remove.
    """

    def __init__(self, index: i64) -> None:
        self.index: i64 = index
        self.due_ms = -1
        self.schedule_id = b""
        self.cancel = b""
        self.every_ms = 0
        self.cron = b""
        self.zone = b""
        self.until_ms = -1
        self.refusal = ""

    @property
    def recurs(self) -> bool:
        return self.every_ms > 0 or len(self.cron) > 0

    @property
    def is_taken(self) -> bool:
        """Whether the record moves to the schedule and leaves a gap in its batch."""
        return self.due_ms >= 0 or len(self.cancel) > 0


def is_ours(name: bytes) -> bool:
    return name.startswith((DELIVER, SCHEDULE))


def read_wish(walker: Walker, index: i64, now_ms: int, max_delay_ms: int) -> Wish | None:
    """The wish of the record that `walker` stepped over last; None if it has no delivery header.

    For a recurring record, call `begin` next.
    """
    data = walker.data
    headers = Walker(data, walker.header_position, walker.position)
    left: i64 = walker.header_count
    wish: Wish | None = None
    seen: list[bytes] = []
    while left > 0:
        left -= 1
        size = headers.varint(headers.end)
        start: i64 = headers.position
        headers.position += size
        value_size = headers.varint(headers.end)
        value_start: i64 = headers.position
        if value_size > 0:
            headers.position += value_size
        # "x-deliver-" and "x-schedule" both have ten bytes and start with "x-".
        if size < 10 or data[start + 1] != 0x2D or (data[start] != 0x78 and data[start] != 0x58):
            continue
        name = data[start : start + size].lower()
        if not is_ours(name):
            continue
        if wish is None:
            wish = Wish(index)
        if name in OWN:
            continue
        if name in seen:
            wish.refusal = f"{text_of(name)} is given twice"
            return wish
        seen.append(name)
        value = data[value_start : value_start + value_size] if value_size > 0 else b""
        take(wish, name, value, now_ms, max_delay_ms)
        if wish.refusal:
            return wish
    if wish is not None and seen:
        check_together(wish, seen)
    return wish


def take(wish: Wish, name: bytes, value: bytes, now_ms: int, max_delay_ms: int) -> None:
    if name == AFTER:
        delay_ms = number_of(value)
        if delay_ms < 0:
            wish.refusal = f"x-deliver-after-ms is {shown(value)}, not a number of milliseconds"
        elif delay_ms > max_delay_ms or delay_ms > MAX_I64 - now_ms:
            wish.refusal = f"x-deliver-after-ms is {delay_ms}, delivery.delay.max.ms is {max_delay_ms}"
        else:
            wish.due_ms = now_ms + delay_ms
    elif name == AT:
        due_ms = number_of(value)
        if due_ms < 0:
            due_ms = time_of(value)
        if due_ms < 0:
            wish.refusal = f"x-deliver-at is {shown(value)}, neither milliseconds nor a time with its zone"
        elif due_ms - now_ms > max_delay_ms:
            wish.refusal = f"x-deliver-at is {due_ms - now_ms} ms away, delivery.delay.max.ms is {max_delay_ms}"
        else:
            wish.due_ms = max(due_ms, now_ms)
    elif name == ID:
        if not 0 < len(value) <= MOST_ID_BYTES or value[0] == 0x40 or value == ALL:
            wish.refusal = f"x-schedule-id is {shown(value)}, not 1 to {MOST_ID_BYTES} bytes without @ in front"
        wish.schedule_id = value
    elif name == CANCEL:
        if not 0 < len(value) <= MOST_ID_BYTES or (value[0] == 0x40 and number_of(value[1:]) < 0):
            wish.refusal = f"x-schedule-cancel is {shown(value)}, neither an id nor @ and an offset"
        wish.cancel = value
    elif name == EVERY:
        wish.every_ms = every_ms_of(value)
        if wish.every_ms < 0:
            wish.refusal = f"x-schedule-every is {shown(value)}, not a time of a second or more, such as 5m"
    elif name == CRON:
        wish.cron = value or b"?"
    elif name == ZONE:
        wish.zone = value or b"?"
    elif name == UNTIL:
        wish.until_ms = number_of(value)
        if wish.until_ms < 0:
            wish.until_ms = time_of(value)
        if wish.until_ms < 0:
            wish.refusal = f"x-schedule-until is {shown(value)}, neither milliseconds nor a time with its zone"
    else:
        wish.refusal = f"{text_of(name)} is not a header of delayed delivery"


def check_together(wish: Wish, seen: list[bytes]) -> None:
    if AFTER in seen and AT in seen:
        wish.refusal = "x-deliver-after-ms and x-deliver-at exclude each other"
    elif CANCEL in seen and len(seen) > 1:
        wish.refusal = "x-schedule-cancel stands alone: a record that cancels others is never delivered"
    elif EVERY in seen and CRON in seen:
        wish.refusal = "x-schedule-every and x-schedule-cron exclude each other"
    elif wish.recurs and ID not in seen:
        wish.refusal = "a recurring record needs x-schedule-id, by which it is cancelled or replaced"
    elif (ZONE in seen and CRON not in seen) or (UNTIL in seen and not wish.recurs):
        wish.refusal = "x-schedule-tz and x-schedule-until belong to a recurring record"
    elif ID in seen and wish.due_ms < 0 and not wish.recurs:
        wish.refusal = "x-schedule-id needs x-deliver-after-ms or x-deliver-at"


def begin(wish: Wish, now_ms: int, max_delay_ms: int) -> None:
    """Find the first due time of a recurring record, if its headers do not give one."""
    if wish.cron:
        fault = cron_fault(wish.cron, wish.zone)
        if fault:
            wish.refusal = f"x-schedule-cron {shown(wish.cron)} {fault}"
            return
    if wish.due_ms < 0:
        wish.due_ms = next_due(wish.every_ms, wish.cron, wish.zone, wish.until_ms, now_ms, now_ms)
    if wish.due_ms < 0 or 0 <= wish.until_ms < wish.due_ms:
        wish.refusal = "a recurring record that is never due"
    elif wish.due_ms - now_ms > max_delay_ms:
        wish.refusal = f"the first time is {wish.due_ms - now_ms} ms away, delivery.delay.max.ms is {max_delay_ms}"


def number_of(value: bytes) -> int:
    """A number of at least 0, as digits or as eight bytes; -1 if it is neither. Eight letters are none: as milliseconds
    they would be 73 million years."""
    if value.isdigit():
        number = int(value) if len(value) <= MOST_DIGITS else MAX_I64
        return min(number, MAX_I64)
    if len(value) == 8 and not (value.isascii() and value.decode("ascii").isprintable()):
        return max(int.from_bytes(value, "big", signed=True), -1)
    return -1


def time_of(value: bytes) -> int:
    """A time such as 2030-01-31T08:00:00Z as milliseconds since 1970, rounded up; -1 if it is not a time.

    A time before 1970 is 0.
    """
    from datetime import UTC, datetime, timedelta

    if len(value) > MOST_TIME_BYTES:
        return -1
    try:
        moment = datetime.fromisoformat(value.decode("ascii").upper())
    except (ValueError, UnicodeDecodeError):
        return -1
    if moment.tzinfo is None:
        return -1
    past = datetime(1970, 1, 1, tzinfo=UTC) - moment
    return max(-(past // timedelta(milliseconds=1)), 0)


def text_of(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")[:64]


def shown(value: bytes) -> str:
    """A producer's value, shortened for an error message."""
    return repr(value[:32].decode("utf-8", "backslashreplace"))
