"""The loop of `ixion consume`: from the reader to standard output, as long as it is wanted.

Beside copying it watches three things that a person would otherwise only wonder about: brokers that cannot be reached,
records that retention took first, and partitions that the topic got while it was being read.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping

from ixion.cli.consume_format import Write
from ixion.cli.output import note
from ixion.clients.cluster import Cluster
from ixion.clients.metadata import TopicPartition
from ixion.clients.reader import Reader

POLL_S = 0.5
LOOK_S = 10.0  # how often to look for new partitions
SOON_S = 2.0  # trouble that is over by then is not worth a word


class Watch:
    """Says each thing once."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._missed = 0
        self._said_of_s = -1.0  # the beginning of the trouble that was told

    def look(self) -> None:
        reader = self._reader
        if reader.missed > self._missed:
            note(f"{reader.missed - self._missed} records were deleted before they could be read")
            self._missed = reader.missed
        since_s = reader.trouble_since_s
        if reader.trouble is not None and since_s != self._said_of_s and time.monotonic() - since_s > SOON_S:
            note(f"{reader.trouble.message} (trying again)")
            self._said_of_s = since_s


def follow(cluster: Cluster, topic: str, reader: Reader, write: Write, most: int | None, *, growing: bool) -> None:
    """Copy until there are `most`, or for ever; `growing`: with the partitions that the topic gets meanwhile."""
    left = most
    watch = Watch(reader)
    look_s = time.monotonic() + LOOK_S
    while left is None or left > 0:
        written = copy_once(reader, write, left, None)
        left = None if left is None else left - written
        watch.look()
        if growing and reader.trouble is None and time.monotonic() > look_s:
            add_new_partitions(cluster, topic, reader)
            look_s = time.monotonic() + LOOK_S


def copy_to_ends(
    reader: Reader, write: Write, most: int | None, ends: Mapping[TopicPartition, int], patience_s: float
) -> None:
    """Copy until there are `most` or every partition has reached its end. Trouble that lasts so long is raised."""
    left = most
    watch = Watch(reader)
    while any(reader.offsets[place] < end for place, end in ends.items()):
        written = copy_once(reader, write, left, ends)
        left = None if left is None else left - written
        if left == 0:
            return
        watch.look()
        if reader.trouble is not None and time.monotonic() - reader.trouble_since_s > patience_s:
            raise reader.trouble


def copy_once(reader: Reader, write: Write, most: int | None, ends: Mapping[TopicPartition, int] | None) -> int:
    """Write what has come, `most` at the most and nothing from the ends on; how many that were."""
    out = sys.stdout.buffer
    written = 0
    for fetched in reader.poll(POLL_S):
        end = None if ends is None else ends[fetched.partition]
        for record in fetched.records():
            if written == most or (end is not None and record.offset >= end):
                break
            out.write(write(fetched.partition, record))
            written += 1
    out.flush()
    return written


def add_new_partitions(cluster: Cluster, topic: str, reader: Reader) -> None:
    """What the topic got since is read from its beginning: it is all new."""
    cluster.forget()
    known = reader.offsets
    for partition in cluster.topic(topic).partitions:
        place = TopicPartition(topic, partition.number)
        if place not in known and partition.leader >= 0:
            reader.add(place, 0)
