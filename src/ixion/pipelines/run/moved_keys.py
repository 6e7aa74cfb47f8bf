"""Refuses to order changes by offset where offsets have no order: keys that may be in two partitions.

`order = "kafka_offset"` is right as long as each key stays in one partition of one topic. Offsets of two partitions
cannot be compared. When a partition is added, a producer moves keys to other partitions, whose offsets begin at 0:

    id 7 in orders-0 at offset 1000        then, with a third partition, in orders-2 at offset 3

The newer change has the smaller offset and would be ignored. So with more than one topic, or with more partitions than
the pipeline began with, such a sink is refused, unless the file says that `keys_stay` where they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from ixion.pipelines.checkpoint.checkpoint import Checkpoint
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.spec import PipelineSpec
from ixion.pipelines.spec.sinks import TableSink
from ixion.pipelines.spec.upsert import OFFSET


def refuse_moved_keys(spec: PipelineSpec, checkpoint: Checkpoint, partitions: Mapping[str, int]) -> None:
    """PARTITIONS is the number of each topic's partitions now."""
    ordered = [
        sink
        for sink in spec.sinks
        if isinstance(sink, TableSink) and sink.upsert and sink.upsert.order == OFFSET and not sink.upsert.keys_stay
    ]
    if not ordered:
        return
    if len(partitions) > 1:
        names = ", ".join(sorted(partitions))
        raise _refusal(
            ordered[0], f"the pipeline reads {len(partitions)} topics ({names}), whose offsets have no order"
        )
    first = checkpoint.first_partitions()
    for topic, count in partitions.items():
        if count > first.get(topic, count):
            now = f"{topic} has {count} partitions now and had {first[topic]}"
            raise _refusal(ordered[0], f"{now}, so a key may have moved to one whose offsets begin anew")


def _refusal(sink: TableSink, why: str) -> PipelineError:
    message = f"{sink.label} orders changes by {OFFSET}, but {why}: a newer change could be taken for an older one"
    hint = (
        'order = "…" names a column that says which change is newer, such as a time or a version; if no key is ever in '
        "two partitions, by a partitioner of your own: keys_stay = true"
    )
    return PipelineError(message, hint=hint)
