"""The login to ZooKeeper by SASL, mechanism DIGEST-MD5.

    zookeeper.sasl.jaas.config=org.apache.zookeeper.server.auth.DigestLoginModule required \\
      username="kafka" password="kafka-secret";
    zookeeper.sasl.jaas.file=/etc/kafka/jaas.conf     # or this: the file that Kafka's JVM is started with

Kafka takes the file from a property of its JVM, java.security.auth.login.config, so it has no setting for it. The file
is read once, at the start.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from ixion.broker.security.jaas import client_section, zookeeper_login_of
from ixion.config.broker import BrokerConfig
from ixion.config.cluster_settings import ZOOKEEPER_SASL_JAAS_CONFIG, ZOOKEEPER_SASL_JAAS_FILE
from ixion.config.errors import InvalidSettingError
from ixion.language.sasl.digest_md5 import DigestMd5Client
from ixion.language.sasl.exchange import ClientExchange

# Every server of ZooKeeper goes by this name, unless a system property changes it; so do Kafka's clients.
URI: Final = "zookeeper/zk-sasl-md5"


def zookeeper_login(config: BrokerConfig) -> Callable[[], ClientExchange] | None:
    """Makes the exchange of one login; None if there is none. InvalidSettingError does not show passwords."""
    text, file = config[ZOOKEEPER_SASL_JAAS_CONFIG], config[ZOOKEEPER_SASL_JAAS_FILE]
    if text and file:
        raise InvalidSettingError(ZOOKEEPER_SASL_JAAS_FILE.name, file, "left out if zookeeper.sasl.jaas.config is set")
    try:
        if file:
            text = client_section(Path(file).read_text())
        if not text:
            return None
        user, password = zookeeper_login_of(text)
    except (OSError, ValueError) as error:
        if file:
            reason = getattr(error, "strerror", None) or error
            raise InvalidSettingError(ZOOKEEPER_SASL_JAAS_FILE.name, file, f"a JAAS file: {reason}") from error
        raise InvalidSettingError(ZOOKEEPER_SASL_JAAS_CONFIG.name, "[hidden]", str(error)) from error
    return partial(DigestMd5Client, user, password, URI)
