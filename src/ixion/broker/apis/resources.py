"""Checks the resource names of requests about settings."""

from __future__ import annotations

from ixion.broker.metadata import paths
from ixion.broker.metadata.image import ClusterImage
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_name import check_topic_name


def check_topic(image: ClusterImage, name: str) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the name of the topic is empty")
    check_topic_name(name)
    if name not in image.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{name}'")


def check_group_name(name: str) -> None:
    """The group need not exist: its settings apply once it does."""
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the name of the group is empty")


def check_broker(node_id: int, name: str, *, all_of_them: bool) -> str:
    """The entity in the tree: this broker, or all brokers if the name is empty and `all_of_them` allows it."""
    if not name:
        if all_of_them:
            return paths.DEFAULT_ENTITY
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the broker id is empty")
    if not name.lstrip("+-").isdecimal() or not name.isascii():
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"a broker id is a whole number, not '{name}'")
    if name != str(node_id):  # only one spelling: "+1", "01" and "001" would each be described again
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"this is broker {node_id}, but the request is for broker {name}")
    return str(node_id)


def unsupported(number: int) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, f"resource type {number} has no settings here")
