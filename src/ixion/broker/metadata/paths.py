"""The paths of Kafka 3.9's tree. The `*_node.py` files beside this one encode the contents of the nodes."""

from __future__ import annotations

from typing import Final

BROKERS: Final = "/brokers/ids"  # /1: registration of broker 1, ephemeral; its created_zxid is the broker's epoch
BROKER_SEQUENCE: Final = "/brokers/seqid"  # its version counts the generated broker ids
TOPICS: Final = "/brokers/topics"
CONTROLLER: Final = "/controller"  # ephemeral: the broker that created it is the controller
CONTROLLER_EPOCH: Final = "/controller_epoch"
CLUSTER_ID: Final = "/cluster/id"
CONFIG: Final = "/config"
CONFIG_CHANGES: Final = "/config/changes"
DELETE_TOPICS: Final = "/admin/delete_topics"  # a child for each topic to be deleted
REASSIGN_PARTITIONS: Final = "/admin/reassign_partitions"
PREFERRED_ELECTION: Final = "/admin/preferred_replica_election"
ISR_CHANGES: Final = "/isr_change_notification"
LOG_DIR_EVENTS: Final = "/log_dir_event_notification"
PRODUCER_IDS: Final = "/latest_producer_id_block"
FEATURES: Final = "/feature"
CONSUMERS: Final = "/consumers"  # not used since Kafka 0.9; created because Kafka creates it
DELEGATION_TOKENS: Final = "/delegation_token/tokens"
PLACEMENT: Final = "/ixion_placement"  # ours; Apache Kafka ignores it

CONFIG_TYPES: Final = ("topics", "clients", "users", "brokers", "ips")
DEFAULT_ENTITY: Final = "<default>"  # the default for all entities of a type

# Sequential nodes: a number is appended.
NEW_CONFIG_CHANGE: Final = f"{CONFIG_CHANGES}/config_change_"
NEW_LOG_DIR_EVENT: Final = f"{LOG_DIR_EVENTS}/log_dir_event_"

# Created at the start of every broker, with their parents, if they are missing.
BASE: Final = (
    *(CONSUMERS, BROKERS, TOPICS, CONFIG_CHANGES, DELETE_TOPICS, BROKER_SEQUENCE, ISR_CHANGES, PRODUCER_IDS),
    *(LOG_DIR_EVENTS, *(f"{CONFIG}/{kind}" for kind in CONFIG_TYPES)),
)


def broker(broker_id: int) -> str:
    return f"{BROKERS}/{broker_id}"


def topic(name: str) -> str:
    return f"{TOPICS}/{name}"


def partitions(topic_name: str) -> str:
    return f"{TOPICS}/{topic_name}/partitions"


def partition(topic_name: str, number: int) -> str:
    return f"{TOPICS}/{topic_name}/partitions/{number}"


def partition_state(topic_name: str, number: int) -> str:
    return f"{TOPICS}/{topic_name}/partitions/{number}/state"


def config(kind: str, entity: str) -> str:
    """`entity` must be `sanitized` for clients, users and groups, whose names may contain any character."""
    return f"{CONFIG}/{kind}/{entity}"


def sanitized(name: str) -> str:
    """Any name as the name of a node: URL encoding as in Kafka's Sanitizer, with %20 for a blank. In addition "." and
    ".." are encoded, which are no names of nodes; Kafka fails with them."""
    from urllib.parse import quote  # few names need it, and it is slow to import

    if name in (".", ".."):
        return name.replace(".", "%2E")
    return quote(name, safe="").replace("~", "%7E")


def plain(entity: str) -> str:
    from urllib.parse import unquote

    return unquote(entity)


def delete_topic(name: str) -> str:
    return f"{DELETE_TOPICS}/{name}"
