"""Whether a run has only few records before it: then Java need not optimise its code, and the run ends sooner."""

from __future__ import annotations

from typing import Final

from ixion.pipelines.checkpoint.checkpoint import is_here, open_checkpoint
from ixion.pipelines.spec import PipelineSpec
from ixion.pipelines.spec.sinks import TableSink

FEW: Final = 20_000  # records; more than this and Java's optimising compiler pays
_PATIENCE_MS: Final = 2000.0


def has_few(spec: PipelineSpec) -> bool:
    """Asks the broker by our own client, before Spark is started. False if the number is unknown, and for a pipeline
    that may have more to do than to read its records: tables to join, to merge into, or to look after."""
    tables = [sink for sink in spec.sinks if isinstance(sink, TableSink)]
    more = spec.tables or any(sink.upsert is not None or sink.upkeep.wanted for sink in tables)
    source = spec.source
    if more or source.pattern is not None or source.options or not is_here(spec.checkpoint):
        return False
    from ixion.language.model.errors import KafkaError

    try:
        return _waiting(spec) < FEW
    except (KafkaError, OSError, ValueError):
        return False


def _waiting(spec: PipelineSpec) -> int:
    """Offsets from where the run begins to the ends of the topics; of a first run, all that are there."""
    from ixion.clients.admin.offsets import EARLIEST, LATEST
    from ixion.clients.admin.runner import AdminRunner
    from ixion.clients.admin.starts import find_topic, offsets_at
    from ixion.clients.metadata import TopicPartition

    with AdminRunner(
        spec.source.bootstrap,
        default_api_timeout_ms=_PATIENCE_MS,
        request_timeout_ms=_PATIENCE_MS,
        socket_connection_setup_timeout_ms=_PATIENCE_MS,
    ) as admin:
        topics = spec.source.topics
        places = [
            TopicPartition(name, each.number) for name in topics for each in admin.run(find_topic, name).partitions
        ]
        ends = admin.run(offsets_at, places, LATEST, False)
        first = admin.run(offsets_at, places, EARLIEST, False)
    reached = open_checkpoint(spec.checkpoint).position() or {}
    starts = {place: reached.get(place.topic, {}).get(str(place.partition), first[place]) for place in places}
    return sum(max(0, ends[place] - start) for place, start in starts.items())
