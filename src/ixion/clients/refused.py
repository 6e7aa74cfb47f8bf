"""Kafka's settings that these clients refuse, and why: a setting without effect would mislead.

A name that ends in * stands for all names that begin so. `docs/clients.md` has the same table; a test compares both,
and checks that every setting of Kafka's own clients is either here or among ours.
"""

from __future__ import annotations

from typing import Final

STORES: Final = "stores are PEM files, or PEM text"
CONTEXT: Final = "give an ssl_context of your own"
FETCHED: Final = "a function as sasl_oauthbearer_token fetches the token"
METRICS: Final = "metrics() is a snapshot of counters"
SHARE: Final = "ShareConsumer is the client of share groups (KIP-932)"

REFUSED: Final[dict[str, str]] = {
    "bootstrap_controllers": "brokers are asked, and these ask the controller",
    "bootstrap_servers": "the addresses are the first argument",
    "check_crcs": "checksums are always checked",
    "client_dns_lookup": "every address that a name has is tried",
    "compression_*_level": "here it is compression_level",
    "compression_type": "here it is compression",
    "config_providers": "values are given as they are",
    "enable_metrics_push": METRICS,
    "exclude_internal_topics": "a pattern never matches internal topics; subscribe to them by name",
    "group_id": "here it is group",
    "interceptor_classes": "here it is interceptors, a list of objects",
    "internal_*": "only Kafka's own parts use it",
    "metadata_recovery_*": "the first addresses are tried again whenever no known broker answers",
    "metric_reporters": METRICS,
    "metrics_*": METRICS,
    "partitioner_class": "here it is partitioner, a function",
    "receive_buffer_bytes": "the system sizes the buffers of sockets",
    "sasl_client_callback_handler_class": "give sasl_username and sasl_password",
    "sasl_jaas_config": "here it is sasl_username and sasl_password",
    "sasl_kerberos_*": "GSSAPI (Kerberos) is not supported",
    "sasl_login_*": FETCHED,
    "sasl_oauthbearer_*": FETCHED,
    "retries": "default_api_timeout_ms ends retries",
    "security_providers": CONTEXT,
    "send_buffer_bytes": "the system sizes the buffers of sockets",
    "share_*": SHARE,
    "socket_connection_setup_timeout_max_ms": "every attempt may take socket_connection_setup_timeout_ms",
    "ssl_enabled_protocols": CONTEXT,
    "ssl_engine_factory_class": CONTEXT,
    "ssl_keymanager_algorithm": CONTEXT,
    "ssl_keystore_password": STORES,
    "ssl_keystore_type": STORES,
    "ssl_protocol": CONTEXT,
    "ssl_provider": CONTEXT,
    "ssl_secure_random_implementation": CONTEXT,
    "ssl_trustmanager_algorithm": CONTEXT,
    "ssl_truststore_password": STORES,
    "ssl_truststore_type": STORES,
    "transaction_two_phase_commit_enable": "commits in two phases (KIP-939) are not supported yet",
}


def why_refused(name: str) -> str | None:
    """The reason, if it is a setting of Kafka's clients."""
    import re

    name = name.replace(".", "_")
    for known, reason in REFUSED.items():
        if re.fullmatch(known.replace("*", r"\w+"), name):
            return reason
    return None
