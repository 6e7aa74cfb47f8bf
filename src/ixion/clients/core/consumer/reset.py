"""`auto.offset.reset`: where to read from when nothing is committed, or the committed offset no longer exists.

earliest, latest       an end of the log
none                   nowhere: poll raises NoOffsetError
by_duration:PT1H30M    the first record that is at most that old (KIP-1106), in the notation of ISO 8601, PnDTnHnMn.nS;
                       the end of the log, if no record is that young
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ixion.clients.core.consumer.subscription import POLICIES

NONE: Final = "none"
DURATION: Final = "by_duration:"
MOST_MS: Final = 2**63 - 1
# Compiled when it is first needed, which is 0.6 ms of every start of a client.
NOTATION: Final = (
    r"(?i)P(?:([0-9]{1,18})D)?"
    r"(?:T(?=[0-9])(?:([0-9]{1,18})H)?(?:([0-9]{1,18})M)?(?:([0-9]{1,18})(?:\.([0-9]{0,9}))?S)?)?"
)


class ResetPolicy(NamedTuple):
    to: int | None  # EARLIEST or LATEST; None without a policy, or with a duration
    back_ms: int | None = None

    @property
    def exists(self) -> bool:
        return self.to is not None or self.back_ms is not None


def read_policy(text: str) -> ResetPolicy:
    """ValueError, naming the allowed values, if it is none of them."""
    if text in POLICIES:
        return ResetPolicy(POLICIES[text])
    if text == NONE:
        return ResetPolicy(None)
    found = re.fullmatch(NOTATION, text.removeprefix(DURATION)) if text.startswith(DURATION) else None
    if found is None or not any(found.groups()):
        raise ValueError(
            f"auto_offset_reset must be one of earliest, latest, none, by_duration:PnDTnHnMn.nS, not {text!r}"
        )
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()[:4])
    millis = int((found[5] or "").ljust(3, "0")[:3])
    back_ms = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + millis
    if back_ms > MOST_MS:
        raise ValueError(f"auto_offset_reset is {text!r}, which is more than {MOST_MS} ms")
    return ResetPolicy(None, back_ms)
