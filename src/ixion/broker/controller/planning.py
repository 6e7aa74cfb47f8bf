"""Plans new topics and new partitions, before anything of them is written.

A plan is made in turns of the loop, because a topic may have thousands of partitions. The limit on partitions holds for
a whole request and is checked before the first topic is planned: a request of a few bytes can name many topics, each
with a very large number of partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ixion.broker.controller.assignment import assign, check_assignment
from ixion.broker.metadata.image import PartitionImage, TopicImage
from ixion.config.broker import BrokerConfig
from ixion.config.cluster_settings import DEFAULT_REPLICATION_FACTOR, NUM_PARTITIONS
from ixion.config.errors import InvalidSettingError
from ixion.config.topic import check_topic_settings
from ixion.language.model.delay_names import PREFIX, is_sibling
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.ids import new_id
from ixion.language.model.topic_name import check_topic_name
from ixion.timer.turns import Steps

FIRST_EPOCH: Final = 0
MAX_PARTITIONS: Final = 100_000  # of one topic; a larger number is a mistake
MAX_PARTITIONS_PER_REQUEST: Final = 10_000  # Kafka's limit


class NewTopic(NamedTuple):
    """A topic to be created. -1 means the broker's default."""

    name: str
    partitions: int = -1
    replication: int = -1
    assignment: Mapping[int, tuple[int, ...]] = {}
    config: Mapping[str, str] = {}


class Names:
    """The names of existing topics. Names that differ only in dots and underscores collide, as in metrics systems."""

    def __init__(self, topics: Iterable[str]) -> None:
        self._names = {plain(name): name for name in topics}

    def check(self, name: str) -> None:
        check_topic_name(name)
        if is_sibling(name):
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic '{name}' is reserved: {PREFIX}… holds delayed records"
            )
        other = self._names.get(plain(name))
        if other == name:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic '{name}' already exists")
        if other is not None:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic '{name}' collides with existing topic '{other}'"
            )

    def add(self, name: str) -> None:
        self._names[plain(name)] = name


def plain(name: str) -> str:
    return name.replace(".", "_")


def check_partitions_of_request(counts: Iterable[int]) -> None:
    """`counts`: the new partitions of each topic."""
    total = sum(max(count, 0) for count in counts)
    if total > MAX_PARTITIONS_PER_REQUEST:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"the request creates {total} partitions; at most {MAX_PARTITIONS_PER_REQUEST} are allowed at a time",
        )


def partitions_of(wish: NewTopic, settings: BrokerConfig) -> int:
    if wish.assignment:
        return len(wish.assignment)
    return settings[NUM_PARTITIONS] if wish.partitions == -1 else wish.partitions


def check_topic_config(config: Mapping[str, str], settings: BrokerConfig) -> dict[str, str]:
    try:
        check_topic_settings(settings, config)
    except InvalidSettingError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error
    return dict(config)


def plan_topic(
    wish: NewTopic, brokers: Sequence[int], settings: BrokerConfig, racks: Mapping[int, str | None] | None = None
) -> Steps[TopicImage]:
    replicas: Iterable[tuple[int, ...]]
    config = check_topic_config(wish.config, settings)  # first, as in Kafka
    if wish.assignment:
        if wish.partitions != -1 or wish.replication != -1:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "give either numbers of partitions and replicas or an assignment, not both"
            )
        check_assignment(dict(wish.assignment), brokers)
        replicas = [wish.assignment[number] for number in sorted(wish.assignment)]
    else:
        count = partitions_of(wish, settings)
        replication = settings[DEFAULT_REPLICATION_FACTOR] if wish.replication == -1 else wish.replication
        if replication < 1:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR, f"replication factor {replication} is not larger than 0"
            )
        if not 1 <= count <= MAX_PARTITIONS:
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS,
                f"number of partitions was set to {count}; 1 to {MAX_PARTITIONS} are allowed",
            )
        replicas = assign(brokers, count, replication, racks=racks)
    partitions = yield from collected(replicas, brokers, 0)
    return TopicImage(name=wish.name, topic_id=new_id(), partitions=partitions, config=config)


def plan_growth(
    topics: Mapping[str, TopicImage],
    name: str,
    count: int,
    assignment: Sequence[tuple[int, ...]] | None,
    brokers: Sequence[int],
    racks: Mapping[int, str | None] | None = None,
) -> Steps[list[PartitionImage]]:
    """The partitions that bring a topic to `count`."""
    topic = topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{name}'")
    had = len(topic.partitions)
    if count <= had or count > MAX_PARTITIONS:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"the topic currently has {had} partition(s); {count} would not be an increase"
            if count <= had
            else f"{count} partitions are more than {MAX_PARTITIONS}",
        )
    replicas: Iterable[tuple[int, ...]]
    factor = len(topic.partitions[0].replicas)
    if assignment is None:
        replicas = assign(brokers, count - had, factor, first=had, racks=racks)
    else:
        if len(assignment) != count - had:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{count - had} new partitions, but {len(assignment)} assignments",
            )
        check_assignment(dict(enumerate(assignment, had)), brokers, had)
        if any(len(each) != factor for each in assignment):
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, "the replication factor differs from that of the topic"
            )
        replicas = assignment
    return (yield from collected(replicas, brokers, had))


def new_partitions(
    replicas: Iterable[tuple[int, ...]], live: Sequence[int], first: int = 0
) -> Iterator[PartitionImage]:
    """The first live replica leads; all live replicas are in sync, because they are empty."""
    for number, each in enumerate(replicas, first):
        isr = tuple([broker for broker in each if broker in live])
        yield PartitionImage(
            number=number,
            leader=isr[0] if isr else -1,
            leader_epoch=FIRST_EPOCH,
            isr=isr or each[:1],
            replicas=each,
        )


def collected(replicas: Iterable[tuple[int, ...]], brokers: Sequence[int], first: int) -> Steps[list[PartitionImage]]:
    partitions = []
    for partition in new_partitions(replicas, brokers, first):
        partitions.append(partition)
        yield
    return partitions
