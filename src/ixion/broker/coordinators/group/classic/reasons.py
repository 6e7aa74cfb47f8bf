"""The reason of a rebalance, for one log line."""

from __future__ import annotations

from typing import Final

LONGEST: Final = 255  # Kafka's own clients cut the reasons they send at this length


def member_reason(member_id: str, event: str, given: str | None) -> str:
    """`member c-1 joins: rebalance failed`.

    Java clients repeat the member id in the reason they give; here it appears once.
    """
    said = (given or "")[:LONGEST].replace(member_id, "its own")
    return f"member {member_id} {event}: {said}" if said else f"member {member_id} {event}"
