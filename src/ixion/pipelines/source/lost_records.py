"""Finds records that were lost before they were read. Checked before a run begins, from three inputs:

    position   where the checkpoint continues: topic -> partition -> next offset to read
    ids        the ids of these topics when they were first read; a new topic of the same name has another id
    extents    what the broker has now: the first existing offset, and the end offset

A   the topic no longer exists                                  all after the position is lost
B   it has another id                                           it was created again: all after the position is lost
C   the partition no longer exists                              the same
D   the partition ends before the position                      it was created again or truncated
E   the partition begins after the position                     the records in between are lost

With the position 6 of orders-0, an extent of 4 to 9 is fine (0 to 3 had been read), 6 to 6 too (nothing new), 8 to 9 is
case E (6 and 7 are gone), 0 to 3 is case D. Offsets without a record between two that exist (compaction, transactions,
delayed records) are no loss: they lie within the extent.

Spark finds C, D and E too, but not B, and E only after it has begun the batch; it reports them by a Java stack trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ixion.pipelines.batch.metrics import Offsets
from ixion.pipelines.errors import PipelineError

SHOWN: Final = 4  # of the losses, in the message
_GONE: Final = (
    "the rows that were written are in the tables. If the topic was one of several that a pattern finds, and all of it "
    'had been read, this goes on with the others: [source.options] failOnDataLoss = "false" for one run'
)
_ANEW: Final = (
    "to add all that is in the topic now to the same tables: move the checkpoint away and run with --again; for tables "
    "of their own: give the pipeline another name and other paths"
)
_DELETED: Final = (
    "was the topic's retention shorter than the time between two runs? The rows that were read are in the tables; to "
    'go on with what is left: [source.options] failOnDataLoss = "false" for one run'
)
EMPTY_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"  # the id of a topic on a broker without topic ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """The present state of a topic at the broker. Partitions are text, as in Spark."""

    id: str
    first: Mapping[str, int]  # partition -> the first existing offset
    end: Mapping[str, int]  # partition -> the next offset to be written


def refuse_losses(position: Offsets, ids: Mapping[str, str], there: Mapping[str, Topic]) -> None:
    """PipelineError if anything after POSITION is lost."""
    gone = [f"topic {topic} is gone, of which {_up_to(read)}" for topic, read in position.items() if topic not in there]
    if gone:  # A
        raise PipelineError(f"what was read before is not there any more: {_listed(gone)}", hint=_GONE)
    anew = [words for topic in sorted(position) for words in _made_anew(topic, position[topic], ids, there[topic])]
    if anew:
        raise PipelineError(f"this is no longer what was read before: {_listed(anew)}", hint=_ANEW)
    deleted = [words for topic in sorted(position) for words in _deleted(topic, position[topic], there[topic])]
    if deleted:
        raise PipelineError(f"records were deleted before they were read: {_listed(deleted)}", hint=_DELETED)


def refuse_made_anew(position: Offsets, ids: Mapping[str, str], there: Mapping[str, str]) -> None:
    """PipelineError if a topic has another id (case B). IDS are the previous ids, THERE the present ones."""
    anew = [
        f"topic {topic} was deleted and recreated, after {_up_to(position.get(topic, {}))}"
        for topic, now in sorted(there.items())
        if _is_another(ids.get(topic, now), now)
    ]
    if anew:
        raise PipelineError(f"this is no longer what was read before: {_listed(anew)}", hint=_ANEW)


def refuse_start(start: Mapping[str, Mapping[int, int]], there: Mapping[str, Topic]) -> None:
    """PipelineError if START, which the file sets for the first run, does not exist."""
    for topic, offsets in start.items():
        now = there.get(topic)
        if now is None:
            continue  # a pattern may match it later
        for number, offset in sorted(offsets.items()):
            partition = str(number)
            if partition not in now.end:
                raise _bad_start(f"source.start names partition {number} of {topic}, which has {len(now.end)}")
            if not now.first[partition] <= offset <= now.end[partition]:
                here = f"{now.first[partition]} to {now.end[partition]}"
                raise _bad_start(f"source.start is offset {offset} of {topic}-{number}, which has offsets {here}")


def _made_anew(topic: str, read: Mapping[str, int], ids: Mapping[str, str], now: Topic) -> Iterator[str]:
    if _is_another(ids.get(topic, now.id), now.id):  # B
        yield f"topic {topic} was deleted and recreated, after {_up_to(read)}"
        return
    for partition, offset in sorted(read.items(), key=_number):
        if partition not in now.end:  # C
            yield f"topic {topic} has no partition {partition} any more, which had been read up to offset {offset}"
        elif now.end[partition] < offset:  # D
            yield f"{topic}-{partition} ends at offset {now.end[partition]} and had been read up to offset {offset}"


def _is_another(before: str, now: str) -> bool:
    return before != now and EMPTY_ID not in (before, now)


def _deleted(topic: str, read: Mapping[str, int], now: Topic) -> Iterator[str]:
    for partition, offset in sorted(read.items(), key=_number):
        first = now.first[partition]
        if first > offset:  # E
            what = f"offset {offset}" if first == offset + 1 else f"offsets {offset} to {first - 1}"
            yield f"{what} of {topic}-{partition}"


def _up_to(read: Mapping[str, int]) -> str:
    parts = [f"partition {partition} up to offset {offset}" for partition, offset in sorted(read.items(), key=_number)]
    return f"{_listed(parts, ', ') or 'nothing'} had been read"


def _number(item: tuple[str, int]) -> int:
    return int(item[0])


def _listed(words: list[str], between: str = "; ") -> str:
    more = f"{between}and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    return between.join(words[:SHOWN]) + more


def _bad_start(message: str) -> PipelineError:
    return PipelineError(message, hint='"earliest" starts with the first record that is there, "latest" at the end')
