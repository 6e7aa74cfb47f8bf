"""Rules between settings, and the settings that need their own parser.

If one of these rules is broken, Apache Kafka does not start either. They are checked at the start and before a dynamic
change.
"""

from __future__ import annotations

from ixion.config import cluster_settings as cluster
from ixion.config import group_settings as group
from ixion.config import log_settings as log
from ixion.config import network_settings as network
from ixion.config import replica_settings as replica
from ixion.config.broker import BrokerConfig
from ixion.config.delay_rules import rules_of
from ixion.config.errors import InvalidSettingError
from ixion.config.group import BEHIND_GROUP
from ixion.config.listeners import listeners
from ixion.config.setting import INT_MAX, Setting

MIB = 1 << 20


def check_rules(config: BrokerConfig) -> None:
    """InvalidSettingError for the first broken rule."""

    def rule(holds: bool, setting: Setting[int], allowed: str) -> None:
        if not holds:
            raise InvalidSettingError(setting.name, str(config[setting]), allowed)

    broker_id, reserved = config[cluster.BROKER_ID], config[cluster.RESERVED_BROKER_MAX_ID]
    if config[cluster.BROKER_ID_GENERATION_ENABLE]:
        rule(-1 <= broker_id <= reserved, cluster.BROKER_ID, f"-1, or 0 to reserved.broker.max.id ({reserved})")
    else:
        rule(broker_id >= 0, cluster.BROKER_ID, "0 or more, as broker.id.generation.enable is false")

    for setting in (log.LOG_ROLL_MS, log.LOG_ROLL_JITTER_MS, log.LOG_RETENTION_MS, log.LOG_FLUSH_INTERVAL_MS):
        rule(setting.accepts(config[setting]), setting, setting.allowed)  # the value may come from a fallback in hours
    if config[log.LOG_CLEANER_ENABLE]:
        threads = config[log.LOG_CLEANER_THREADS]
        enough = config[log.LOG_CLEANER_DEDUPE_BUFFER_SIZE] > threads * MIB
        rule(enough, log.LOG_CLEANER_DEDUPE_BUFFER_SIZE, f"more than 1 MiB for each of {threads} threads")

    wait_ms, timeout_ms = config[replica.REPLICA_FETCH_WAIT_MAX_MS], config[replica.REPLICA_SOCKET_TIMEOUT_MS]
    lag_ms = config[replica.REPLICA_LAG_TIME_MAX_MS]
    wait = replica.REPLICA_FETCH_WAIT_MAX_MS
    rule(wait_ms <= timeout_ms, wait, f"replica.socket.timeout.ms ({timeout_ms}) or less")
    rule(
        wait_ms <= lag_ms, wait, f"replica.lag.time.max.ms ({lag_ms}) or less, or followers fall out of sync by waiting"
    )

    factor = config[group.OFFSETS_TOPIC_REPLICATION_FACTOR]
    acks = group.OFFSETS_COMMIT_REQUIRED_ACKS
    rule(-1 <= config[acks] <= factor, acks, f"-1 to offsets.topic.replication.factor ({factor})")

    for default, least, most in BEHIND_GROUP.values():
        low, high = config[least], config[most]
        rule(low <= high, most, f"{least.name} ({low}) or more")
        rule(low <= config[default] <= high, default, f"{least.name} ({low}) to {most.name} ({high})")
    if not config[group.GROUP_CONSUMER_ASSIGNORS]:
        raise InvalidSettingError(group.GROUP_CONSUMER_ASSIGNORS.name, "", "at least one assignor")

    queued, largest = config[network.QUEUED_MAX_REQUEST_BYTES], config[network.SOCKET_REQUEST_MAX_BYTES]
    fits = queued <= 0 or queued >= largest
    rule(fits, network.QUEUED_MAX_REQUEST_BYTES, f"socket.request.max.bytes ({largest}) or more, or -1 for no limit")

    selector = config[replica.REPLICA_SELECTOR_CLASS]
    selectors = (replica.LEADER_SELECTOR, replica.RACK_AWARE_SELECTOR)
    if selector is not None and selector not in selectors:
        raise InvalidSettingError(replica.REPLICA_SELECTOR_CLASS.name, selector, f"one of {', '.join(selectors)}")

    overrides = connection_overrides(config)
    some = config[network.MAX_CONNECTIONS_PER_IP] > 0 or bool(overrides)
    rule(some, network.MAX_CONNECTIONS_PER_IP, "more than 0 where max.connections.per.ip.overrides has no exceptions")
    log_dirs(config)
    listeners(config)
    rules_of(config[log.DELIVERY_DELAY_TOPICS])


def log_dirs(config: BrokerConfig) -> tuple[str, ...]:
    text = config[log.LOG_DIRS]
    paths = tuple(path.strip() for path in text.split(","))
    if "" in paths:
        raise InvalidSettingError(log.LOG_DIRS.name, text, "one or more directories, separated by commas")
    return paths


def connection_overrides(config: BrokerConfig) -> dict[str, int]:
    """The connection limits of hosts, instead of max.connections.per.ip."""
    text = config[network.MAX_CONNECTIONS_PER_IP_OVERRIDES]
    overrides: dict[str, int] = {}
    for pair in text.split(",") if text else ():
        host, _, count = (part.strip() for part in pair.rpartition(":"))
        if not host or not count.isascii() or not count.isdigit() or int(count) > INT_MAX:
            raise InvalidSettingError(
                network.MAX_CONNECTIONS_PER_IP_OVERRIDES.name, text, "host:count, separated by commas"
            )
        overrides[host.removeprefix("[").removesuffix("]")] = int(count)
    return overrides
