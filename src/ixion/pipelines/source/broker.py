"""Questions of a pipeline to the broker besides records: its topics and their offsets. They go through the admin client
of Spark's connector, so that the same security settings apply."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from ixion.config.table import meant
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.source.broker_address import need_reachable
from ixion.pipelines.source.broker_refusal import refused, refused_settings
from ixion.pipelines.source.lost_records import Topic
from ixion.pipelines.spark.java_classes import java_class
from ixion.pipelines.spec.source import SourceSpec

TIMEOUT_MS: Final = 30_000  # something listens there; on a busy machine its answer takes seconds


class SourceBroker:
    def __init__(
        self, spark: SparkSession, bootstrap: str, options: Mapping[str, str], place: str = "source.options"
    ) -> None:
        """OPTIONS are those of the connector; those that begin with `kafka.` are the client's. PLACE is their section
        in the file."""
        need_reachable(bootstrap, options.get("kafka.security.protocol", "PLAINTEXT"))
        settings = java_class(spark, "java.util.HashMap")()
        for name, value in options.items():
            if name.startswith("kafka."):
                settings.put(name.removeprefix("kafka."), value)
        settings.put("bootstrap.servers", bootstrap)
        settings.put("default.api.timeout.ms", str(TIMEOUT_MS))
        settings.put("request.timeout.ms", str(TIMEOUT_MS // 2))
        self._spark: Final = spark
        self._bootstrap: Final = bootstrap
        self._place: Final = place
        try:
            self._admin: Final[Any] = self._java("org.apache.kafka.clients.admin.Admin").create(settings)
        except Py4JJavaError as error:
            raise refused_settings(_causes(error), place) from error

    def __enter__(self) -> SourceBroker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._admin.close(self._java("java.time.Duration").ofMillis(500))

    def topics(self) -> list[str]:
        names = self._answer(self._admin.listTopics().names())
        joined = str(self._java("java.lang.String").join("\n", names))  # one answer, not two for each name
        return sorted(joined.split("\n")) if joined else []

    def matching(self, spec: SourceSpec) -> dict[str, int]:
        """The topics of SPEC with their numbers of partitions; a missing topic is an error."""
        there = self.topics()
        if spec.pattern is not None:
            wanted = [topic for topic in there if re.fullmatch(spec.pattern, topic)]
            if not wanted:
                hint = f"the broker has: {', '.join(there) or 'no topics'}"
                raise PipelineError(f"no topic matches the pattern {spec.pattern}", hint=hint, retry=True)
        else:
            wanted = list(spec.topics)
            for topic in wanted:
                if topic not in there:
                    raise self._unknown(topic, there)
        described = self._describe(wanted)
        return {topic: int(described[topic].partitions().size()) for topic in wanted}

    def create(self, topic: str) -> None:
        empty = self._java("java.util.Optional").empty()
        new = self._java("org.apache.kafka.clients.admin.NewTopic")(topic, empty, empty)
        self._answer(self._admin.createTopics(self._java("java.util.List").of(new)).all())

    def look_at(self, partitions: Mapping[str, int]) -> dict[str, Topic]:
        """Topic -> its id and the offsets of its partitions."""
        first, end = self.ends(partitions, earliest=True), self.ends(partitions)
        described = self._describe(partitions)
        return {
            topic: Topic(id=str(described[topic].topicId().toString()), first=first[topic], end=end[topic])
            for topic in partitions
        }

    def ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Topic -> its id. A missing topic is an error."""
        described = self._describe(topics)
        return {topic: str(described[topic].topicId().toString()) for topic in topics}

    def ends(
        self, partitions: Mapping[str, int], *, earliest: bool = False, time_ms: int | None = None
    ) -> dict[str, dict[str, int]]:
        """Topic -> partition -> the end offset, or the first offset, or the first that is not older than TIME_MS; -1 if
        there is none."""
        specs = self._java("org.apache.kafka.clients.admin.OffsetSpec")
        new_partition = self._java("org.apache.kafka.common.TopicPartition")
        wanted = self._java("java.util.HashMap")()
        place = specs.earliest() if earliest else specs.latest()
        place = place if time_ms is None else specs.forTimestamp(time_ms)
        for topic, count in partitions.items():
            for number in range(count):
                wanted.put(new_partition(topic, number), place)
        offsets: dict[str, dict[str, int]] = {topic: {} for topic in partitions}
        found = self._answer(self._admin.listOffsets(wanted).all())
        for partition in found:
            offsets[partition.topic()][str(partition.partition())] = int(found[partition].offset())
        return offsets

    def _describe(self, topics: Iterable[str]) -> Any:
        names = self._java("java.util.ArrayList")()
        for topic in topics:
            names.add(topic)
        return self._answer(self._admin.describeTopics(names).allTopicNames())

    def _unknown(self, topic: str, there: list[str]) -> PipelineError:
        shown = [name for name in there if not name.startswith("__")]
        hint = f"the broker has: {', '.join(shown[:20]) or 'no topics'}; source.create_missing = true makes it"
        return PipelineError(f"there is no topic {topic}{meant(topic, shown, 0.6)}", hint=hint, retry=True)

    def _java(self, name: str) -> Any:
        return java_class(self._spark, name)

    def _answer(self, future: Any) -> Any:
        try:
            return future.get(TIMEOUT_MS, self._java("java.util.concurrent.TimeUnit").MILLISECONDS)
        except Py4JJavaError as error:
            raise refused(self._bootstrap, _causes(error), self._place) from error


def _causes(error: Py4JJavaError) -> list[tuple[str, str]]:
    """Java's exceptions, the outermost first: class name, message."""
    found: list[tuple[str, str]] = []
    java = error.java_exception
    while java is not None and len(found) < 20:
        found.append((str(java.getClass().getSimpleName()), str(java.getMessage() or "")))
        java = java.getCause()
    return found
