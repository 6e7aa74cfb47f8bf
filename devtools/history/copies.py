"""Was everything copied? A copy of value "17" is the value "copy 17", in the same partition of another topic.

| anomaly | what was seen |
|---|---|
| uncopied | a value was read from the source, but its copy never from the target, by readers that read all |

That a value is copied twice shows in `checker` as a duplicate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from devtools.history.checker import Anomaly
from devtools.history.operation import Operation


def check_copies(operations: Iterable[Operation], source: str, target: str) -> Iterator[Anomaly]:
    read = {(poll.key, value) for each in operations for poll in each.polls for _, value in poll.records}
    for key, value in sorted(read):
        topic, _, number = key.rpartition("-")
        if topic == source and (f"{target}-{number}", f"copy {value}") not in read:
            yield Anomaly("uncopied", f"{key} {value}")
