"""What settings can be asked for and changed: what the names of resources must be."""

from __future__ import annotations

from ixion.metadata import paths
from ixion.metadata.image import ClusterImage
from ixion.model.errors import ErrorCode, KafkaError
from ixion.model.topic_name import check_topic_name


def check_topic(image: ClusterImage, name: str) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "settings of topics are for one topic, and none is named")
    check_topic_name(name)
    if name not in image.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{name}'")


def check_group_name(name: str) -> None:
    """A group need not exist: what is set for it waits for it."""
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "settings of groups are for one group, and none is named")


def check_broker(node_id: int, name: str, *, all_of_them: bool) -> str:
    """The entity of the tree: this broker, or all brokers where the name is empty and that is allowed."""
    if not name:
        if all_of_them:
            return paths.DEFAULT_ENTITY
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the id of a broker is needed, and none is given")
    if not name.lstrip("+-").isdecimal() or not name.isascii():
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"the id of a broker is a whole number, not '{name}'")
    if name != str(node_id):  # one spelling of it: "+1", "01", "001" … would be described once more each
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"this is broker {node_id}, but the request is for broker {name}")
    return str(node_id)


def unsupported(number: int) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, f"resource type {number} has no settings here")
