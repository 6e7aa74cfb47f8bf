"""`ixion pipeline sample`: example orders, sent by our own producer. Spark is started only for what that cannot do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from ixion.cli.access import PATIENCE_S, Access
from ixion.cli.options import administer
from ixion.cli.produce.commands import producer_settings
from ixion.language.model.errors import KafkaError
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.source.broker_address import need_reachable
from ixion.pipelines.source.example_orders import order_events
from ixion.pipelines.spec import load_spec

if TYPE_CHECKING:
    from ixion.pipelines.spec import PipelineSpec

# Settings of Java's client that a producer of ours can do without.
_UNDERSTOOD: Final = ("kafka.security.protocol", "kafka.client.id", "kafka.isolation.level")


def send_sample(file: Path, count: int) -> str | None:
    """Send COUNT orders to the first topic of FILE, and return its name; None if that takes the settings of Java's
    client, such as a login."""
    spec = load_spec(file)
    if not _is_plain(spec):
        return None
    if not spec.source.topics:
        raise PipelineError("a pattern names no topic to send to")
    from ixion.clients.admin.starts import find_topic
    from ixion.clients.admin.topics import BROKER_DECIDES, NewTopic, create_topics
    from ixion.clients.faults import UnknownTopicError
    from ixion.clients.producer import Producer

    topic = spec.source.topics[0]
    need_reachable(spec.source.bootstrap, "PLAINTEXT")
    access = Access(spec.source.bootstrap, PATIENCE_S, {})
    try:
        with administer(access) as admin:
            try:
                admin.run(find_topic, topic)
            except UnknownTopicError:
                if not spec.source.create_missing:
                    raise
                admin.run(create_topics, [NewTopic(topic, BROKER_DECIDES, BROKER_DECIDES)])[topic]
        with Producer(access.bootstrap, **producer_settings("all", "none", access)) as producer:
            for event in order_events(count):
                producer.send(topic, event.value, key=event.key)
    except KafkaError as error:
        raise PipelineError(str(error)) from error
    return topic


def _is_plain(spec: PipelineSpec) -> bool:
    options = spec.source.options
    protocol = options.get("kafka.security.protocol", "PLAINTEXT").upper()
    return protocol == "PLAINTEXT" and all(name in _UNDERSTOOD for name in options if name.startswith("kafka."))
