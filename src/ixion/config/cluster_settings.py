"""The broker in its cluster: ids, ZooKeeper, topics, the controller, threads."""

from __future__ import annotations

from typing import Final

from ixion.config.setting import (
    flag,
    integer,
    long,
    optional_integer,
    optional_string,
    optional_words,
    secret,
    string,
)

BROKER_ID: Final = integer("broker.id", -1, doc="the id of this broker; -1: generate one")
NODE_ID: Final = integer("node.id", -1, doc="another name of broker.id")
BROKER_ID_GENERATION_ENABLE: Final = flag(
    "broker.id.generation.enable", True, doc="whether an id is generated when none is given"
)
RESERVED_BROKER_MAX_ID: Final = integer(
    "reserved.broker.max.id", 1_000, least=0, doc="the highest id that may be given; generated ones begin above it"
)
BROKER_RACK: Final = optional_string(
    "broker.rack", doc="the rack of this broker, for spreading replicas and fetching from nearby"
)
BACKGROUND_THREADS: Final = integer("background.threads", 10, least=1, doc="threads of the scheduler")
AUTO_CREATE_TOPICS_ENABLE: Final = flag(
    "auto.create.topics.enable", True, doc="whether a Metadata request creates an unknown topic"
)
DELETE_TOPIC_ENABLE: Final = flag("delete.topic.enable", True, doc="whether topics can be deleted")
NUM_PARTITIONS: Final = integer("num.partitions", 1, least=1, doc="default number of partitions of a topic")
DEFAULT_REPLICATION_FACTOR: Final = integer(
    "default.replication.factor", 1, doc="default number of replicas of a topic"
)
AUTO_LEADER_REBALANCE_ENABLE: Final = flag(
    "auto.leader.rebalance.enable", True, doc="whether preferred replicas become leaders again automatically"
)
LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS: Final = long(
    "leader.imbalance.check.interval.seconds", 300, least=1, doc="how often the balance of leaders is checked"
)
LEADER_IMBALANCE_PER_BROKER_PERCENTAGE: Final = integer(
    "leader.imbalance.per.broker.percentage",
    10,
    doc="percentage of a broker's preferred leaderships held by other brokers that starts a rebalance",
)
CONTROLLED_SHUTDOWN_ENABLE: Final = flag(
    "controlled.shutdown.enable", True, doc="whether a broker moves its leaderships to others before it stops"
)
CONTROLLED_SHUTDOWN_MAX_RETRIES: Final = integer(
    "controlled.shutdown.max.retries", 3, doc="attempts to move leaderships to others"
)
CONTROLLED_SHUTDOWN_RETRY_BACKOFF_MS: Final = long(
    "controlled.shutdown.retry.backoff.ms", 5_000, doc="wait between such attempts"
)
CONTROLLER_SOCKET_TIMEOUT_MS: Final = integer(
    "controller.socket.timeout.ms", 30_000, doc="how long a request of the controller to a broker may take"
)
ZOOKEEPER_CONNECT: Final = optional_string(
    "zookeeper.connect", doc="the ZooKeeper ensemble: host:port, separated by commas, and a path at the end"
)
ZOOKEEPER_CONNECTION_TIMEOUT_MS: Final = optional_integer(
    "zookeeper.connection.timeout.ms", doc="time to connect to ZooKeeper; the session timeout unless set"
)
ZOOKEEPER_SESSION_TIMEOUT_MS: Final = integer(
    "zookeeper.session.timeout.ms", 18_000, doc="time without contact after which a broker's session expires"
)
ZOOKEEPER_MAX_IN_FLIGHT_REQUESTS: Final = integer(
    "zookeeper.max.in.flight.requests", 10, least=1, doc="requests to ZooKeeper without a response yet"
)
ZOOKEEPER_SET_ACL: Final = flag(
    "zookeeper.set.acl",
    False,
    doc="whether only brokers may change their ZooKeeper nodes; needs a login by SASL or a client certificate",
)
ZOOKEEPER_SASL_JAAS_CONFIG: Final = secret(
    "zookeeper.sasl.jaas.config", doc="login to ZooKeeper by DIGEST-MD5: module, user and password in JAAS's syntax"
)
ZOOKEEPER_SASL_JAAS_FILE: Final = optional_string(
    "zookeeper.sasl.jaas.file", doc="JAAS file whose section Client has the login to ZooKeeper"
)
ZOOKEEPER_SSL_CLIENT_ENABLE: Final = flag(
    "zookeeper.ssl.client.enable", False, doc="whether connections to ZooKeeper use TLS"
)
ZOOKEEPER_CLIENT_CNXN_SOCKET: Final = optional_string(
    "zookeeper.clientCnxnSocket", doc="Java class of Kafka's ZooKeeper client; not needed here"
)
ZOOKEEPER_SSL_KEYSTORE_LOCATION: Final = optional_string(
    "zookeeper.ssl.keystore.location", doc="file with this broker's private key and certificate for ZooKeeper"
)
ZOOKEEPER_SSL_KEYSTORE_PASSWORD: Final = secret(
    "zookeeper.ssl.keystore.password", doc="password of the key store for ZooKeeper, or of its private key"
)
ZOOKEEPER_SSL_KEYSTORE_TYPE: Final = optional_string(
    "zookeeper.ssl.keystore.type", doc="format of the key store: PEM or PKCS12; default: by its name (.pem, .p12, .pfx)"
)
ZOOKEEPER_SSL_TRUSTSTORE_LOCATION: Final = optional_string(
    "zookeeper.ssl.truststore.location", doc="file with the certificate authorities to trust for ZooKeeper"
)
ZOOKEEPER_SSL_TRUSTSTORE_PASSWORD: Final = secret(
    "zookeeper.ssl.truststore.password", doc="password of the trust store"
)
ZOOKEEPER_SSL_TRUSTSTORE_TYPE: Final = optional_string(
    "zookeeper.ssl.truststore.type",
    doc="format of the trust store: PEM or PKCS12; default: by its name (.pem, .p12, .pfx)",
)
ZOOKEEPER_SSL_PROTOCOL: Final = string(
    "zookeeper.ssl.protocol", "TLSv1.2", doc="version of TLS, unless zookeeper.ssl.enabled.protocols is set"
)
ZOOKEEPER_SSL_ENABLED_PROTOCOLS: Final = optional_words(
    "zookeeper.ssl.enabled.protocols", choices=("TLSv1.2", "TLSv1.3"), doc="versions of TLS to ZooKeeper"
)
ZOOKEEPER_SSL_CIPHER_SUITES: Final = optional_words(
    "zookeeper.ssl.cipher.suites", doc="cipher suites for TLS 1.2 to ZooKeeper, with OpenSSL's names"
)
ZOOKEEPER_SSL_ENDPOINT_IDENTIFICATION_ALGORITHM: Final = string(
    "zookeeper.ssl.endpoint.identification.algorithm",
    "HTTPS",
    doc="check of the host name in ZooKeeper's certificate; empty: no check",
)
ZOOKEEPER_SSL_CRL_ENABLE: Final = flag(
    "zookeeper.ssl.crl.enable", False, doc="whether to check certificate revocation lists; not supported"
)
ZOOKEEPER_SSL_OCSP_ENABLE: Final = flag(
    "zookeeper.ssl.ocsp.enable", False, doc="whether to check certificates with OCSP; not supported"
)
AUTHORIZER_CLASS_NAME: Final = string(
    "authorizer.class.name", "", doc="the class that decides what a principal may do; empty allows everything"
)
PASSWORD_ENCODER_SECRET: Final = secret(
    "password.encoder.secret", doc="secret that encrypts passwords among dynamic settings"
)
PASSWORD_ENCODER_OLD_SECRET: Final = secret(
    "password.encoder.old.secret", doc="the secret before its last change, to read what it has encrypted"
)
PASSWORD_ENCODER_KEYFACTORY_ALGORITHM: Final = optional_string(
    "password.encoder.keyfactory.algorithm",
    doc="how the key is made from the secret; default: PBKDF2WithHmacSHA512",
)
PASSWORD_ENCODER_CIPHER_ALGORITHM: Final = string(
    "password.encoder.cipher.algorithm",
    "AES/CBC/PKCS5Padding",
    doc="cipher of passwords",
)
PASSWORD_ENCODER_KEY_LENGTH: Final = integer(
    "password.encoder.key.length", 128, least=8, doc="bits of the key of passwords: 128, 192 or 256"
)
PASSWORD_ENCODER_ITERATIONS: Final = integer(
    "password.encoder.iterations", 4096, least=1024, doc="rounds that make the key from the secret"
)
DELEGATION_TOKEN_MASTER_KEY: Final = secret(
    "delegation.token.master.key", doc="secret that signs delegation tokens, by its old name"
)
DELEGATION_TOKEN_SECRET_KEY: Final = secret("delegation.token.secret.key", doc="secret that signs delegation tokens")
DELEGATION_TOKEN_MAX_LIFETIME_MS: Final = long(
    "delegation.token.max.lifetime.ms", 604_800_000, least=1, doc="maximum age of a token, including renewals"
)
DELEGATION_TOKEN_EXPIRY_TIME_MS: Final = long(
    "delegation.token.expiry.time.ms", 86_400_000, least=1, doc="life of a token between renewals"
)
DELEGATION_TOKEN_EXPIRY_CHECK_INTERVAL_MS: Final = long(
    "delegation.token.expiry.check.interval.ms", 3_600_000, least=1, doc="how often expired tokens are removed"
)
