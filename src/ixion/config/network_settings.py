"""Listeners, sockets, connections and the request queue."""

from __future__ import annotations

from typing import Final

from ixion.config.setting import INT_MAX, Scope, integer, long, optional_string, string, words

# Loopback only: the user decides whether to open the port to other machines.
LISTENERS: Final = string(
    "listeners",
    "PLAINTEXT://127.0.0.1:9092",
    doc="listeners: NAME://host:port, separated by commas; an empty host means every interface",
)
ADVERTISED_LISTENERS: Final = optional_string(
    "advertised.listeners",
    doc="addresses that clients connect to; default: the listeners",
)
LISTENER_SECURITY_PROTOCOL_MAP: Final = string(
    "listener.security.protocol.map",
    "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
    doc="security protocol of each listener, NAME:PROTOCOL, separated by commas",
)
CONTROL_PLANE_LISTENER_NAME: Final = optional_string(
    "control.plane.listener.name", doc="the listener for the controller's requests, with its own queue"
)
INTER_BROKER_LISTENER_NAME: Final = optional_string(
    "inter.broker.listener.name", doc="the listener for connections between brokers"
)
# Kafka accepts such writes from the client id __admin_client, which any client can use.
INTERNAL_TOPIC_WRITE_LISTENERS: Final = words(
    "ixion.internal.topic.write.listeners",
    (),
    doc="listeners on which clients may produce to internal topics, separated by commas; default: none",
)
SECURITY_INTER_BROKER_PROTOCOL: Final = string(
    "security.inter.broker.protocol",
    "PLAINTEXT",
    choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    doc="protocol between brokers, if inter.broker.listener.name is not set",
)
SASL_MECHANISM_INTER_BROKER_PROTOCOL: Final = string(
    "sasl.mechanism.inter.broker.protocol",
    "GSSAPI",
    doc="SASL mechanism between brokers: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER",
)
NUM_NETWORK_THREADS: Final = integer("num.network.threads", 3, least=1, doc="network processors per listener")
NUM_IO_THREADS: Final = integer("num.io.threads", 8, least=1, scope=Scope.CLUSTER_WIDE, doc="request handlers")
QUEUED_MAX_REQUESTS: Final = integer(
    "queued.max.requests", 500, least=1, doc="requests that may wait for a handler; above it the broker stops reading"
)
# Kafka has no limit by default: a few clients with large requests can use all its memory.
QUEUED_MAX_REQUEST_BYTES: Final = long(
    "queued.max.request.bytes",
    268_435_456,
    doc="bytes of requests in memory; above it the broker stops reading; -1: no limit",
)
SOCKET_SEND_BUFFER_BYTES: Final = integer(
    "socket.send.buffer.bytes", 102_400, doc="SO_SNDBUF of a connection; -1: the system's default"
)
SOCKET_RECEIVE_BUFFER_BYTES: Final = integer(
    "socket.receive.buffer.bytes", 102_400, doc="SO_RCVBUF of a connection; -1: the system's default"
)
SOCKET_REQUEST_MAX_BYTES: Final = integer(
    "socket.request.max.bytes", 104_857_600, least=1, doc="size of the largest accepted request"
)
SOCKET_LISTEN_BACKLOG_SIZE: Final = integer(
    "socket.listen.backlog.size", 50, least=1, doc="connections that may wait to be accepted"
)
SOCKET_CONNECTION_SETUP_TIMEOUT_MS: Final = long(
    "socket.connection.setup.timeout.ms", 10_000, doc="time to connect to another broker, at the first attempt"
)
SOCKET_CONNECTION_SETUP_TIMEOUT_MAX_MS: Final = long(
    "socket.connection.setup.timeout.max.ms", 30_000, doc="time to connect to another broker, after many failures"
)
MAX_CONNECTIONS: Final = integer(
    "max.connections", INT_MAX, least=0, scope=Scope.CLUSTER_WIDE, doc="most connections to the broker"
)
MAX_CONNECTIONS_PER_IP: Final = integer(
    "max.connections.per.ip", INT_MAX, least=0, scope=Scope.CLUSTER_WIDE, doc="most connections from one address"
)
MAX_CONNECTIONS_PER_IP_OVERRIDES: Final = string(
    "max.connections.per.ip.overrides",
    "",
    scope=Scope.CLUSTER_WIDE,
    doc="limits of some addresses, host:count, separated by commas",
)
MAX_CONNECTION_CREATION_RATE: Final = integer(
    "max.connection.creation.rate", INT_MAX, least=0, scope=Scope.CLUSTER_WIDE, doc="connections accepted per second"
)
CONNECTIONS_MAX_IDLE_MS: Final = long(
    "connections.max.idle.ms", 600_000, doc="a connection without requests is closed after this time"
)
REQUEST_TIMEOUT_MS: Final = integer("request.timeout.ms", 30_000, doc="how long a request to another broker may take")
MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS: Final = integer(
    "max.incremental.fetch.session.cache.slots", 1_000, least=0, doc="most incremental fetch sessions"
)
MAX_REQUEST_PARTITION_SIZE_LIMIT: Final = integer(
    "max.request.partition.size.limit", 2_000, least=1, doc="most partitions in a DescribeTopicPartitions response"
)
FETCH_MAX_BYTES: Final = integer(
    "fetch.max.bytes", 57_671_680, least=1_024, doc="most bytes in the response to a fetch"
)
FETCH_PURGATORY_PURGE_INTERVAL_REQUESTS: Final = integer(
    "fetch.purgatory.purge.interval.requests",
    1_000,
    doc="completed fetches in their purgatory that start a purge",
)
PRODUCER_PURGATORY_PURGE_INTERVAL_REQUESTS: Final = integer(
    "producer.purgatory.purge.interval.requests",
    1_000,
    doc="completed produces in their purgatory that start a purge",
)
DELETE_RECORDS_PURGATORY_PURGE_INTERVAL_REQUESTS: Final = integer(
    "delete.records.purgatory.purge.interval.requests",
    1,
    doc="completed record deletions in their purgatory that start a purge",
)
