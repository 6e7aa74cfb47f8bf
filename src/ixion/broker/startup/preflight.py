"""Checks before anything is changed: addresses, ports, directories.

A broker that cannot use its port or its directory reports that at once, and leaves no trace: it creates no directory,
removes no marker and recovers no log.
"""

from __future__ import annotations

import errno
import os
import socket
import stat

from ixion.broker.log.lock import FILE_NAME as LOCK_FILE
from ixion.broker.log.lock import DirectoryLock, DirectoryLockedError
from ixion.broker.startup.errors import StartupError
from ixion.broker.startup.listeners import authenticates, check_security
from ixion.config import rules
from ixion.config.broker import BrokerConfig
from ixion.config.cluster_settings import (
    AUTHORIZER_CLASS_NAME,
    ZOOKEEPER_CONNECT,
    ZOOKEEPER_SET_ACL,
    ZOOKEEPER_SSL_CLIENT_ENABLE,
    ZOOKEEPER_SSL_KEYSTORE_LOCATION,
)
from ixion.config.errors import InvalidSettingError
from ixion.config.listeners import Endpoint, listeners
from ixion.config.log_settings import LOG_DIRS
from ixion.config.security_settings import SUPER_USERS

# Kafka's authorizers, which have the same rules; ours replaces either.
AUTHORIZERS = ("kafka.security.authorizer.AclAuthorizer", "org.apache.kafka.metadata.authorizer.StandardAuthorizer")
IN_USE = (errno.EADDRINUSE, errno.EACCES, errno.EADDRNOTAVAIL)


def check(config: BrokerConfig, allow_remote: bool) -> list[str]:
    """Returns warnings; StartupError if the broker could not start."""
    warnings = []
    for endpoint in listeners(config).bound:
        if endpoint.protocol != "PLAINTEXT":
            check_security(config, endpoint)
        if not is_loopback(endpoint.host) and not authenticates(config, endpoint):
            if not allow_remote:
                raise StartupError(
                    f"listener {endpoint} can be reached from other machines, and clients there could read and delete"
                    " everything: listen on 127.0.0.1, or start with --allow-remote if that is what you want"
                )
            warnings.append(f"listener {endpoint} is open to every machine in reach: there is no authentication")
        check_port(endpoint)
    if config[ZOOKEEPER_CONNECT]:  # a broker alone has no others to connect to
        from ixion.broker.startup.peers import check_peers

        check_peers(config)
        check_zookeeper_identity(config)
    check_authorizer(config)
    check_passwords(config)
    for path in log_dirs(config):
        check_directory(path)
    return warnings


def check_zookeeper_identity(config: BrokerConfig) -> None:
    """StartupError if nodes are to belong to this broker, and ZooKeeper would not know who it is."""
    from ixion.broker.security.zookeeper_login import zookeeper_login

    try:
        by_login = zookeeper_login(config) is not None
    except InvalidSettingError as error:
        raise StartupError(str(error)) from error
    by_certificate = config[ZOOKEEPER_SSL_CLIENT_ENABLE] and config[ZOOKEEPER_SSL_KEYSTORE_LOCATION]
    if config[ZOOKEEPER_SET_ACL] and not by_login and not by_certificate:
        raise StartupError(
            "zookeeper.set.acl=true needs a certificate by which ZooKeeper knows this broker"
            " (zookeeper.ssl.client.enable=true and zookeeper.ssl.keystore.location)"
            " or a login by SASL (zookeeper.sasl.jaas.config or zookeeper.sasl.jaas.file)"
        )


def check_passwords(config: BrokerConfig) -> None:
    if any(name.startswith("password.encoder.") for name in config.given):
        from ixion.config.password_encoder import check_encoder

        try:
            check_encoder(config)
        except InvalidSettingError as error:
            raise StartupError(str(error)) from error


def check_authorizer(config: BrokerConfig) -> None:
    """StartupError if the authorizer is not one of AUTHORIZERS, or its super users cannot be read."""
    name = config[AUTHORIZER_CLASS_NAME]
    if name and name not in AUTHORIZERS:
        raise StartupError(f"unknown authorizer.class.name {name!r}; supported: {' and '.join(AUTHORIZERS)}")
    if name:
        from ixion.broker.acl.authorizer import parse_super_users

        try:
            parse_super_users(config[SUPER_USERS])
        except ValueError as error:
            raise StartupError(f"super.users: {error}") from error


def log_dirs(config: BrokerConfig) -> list[str]:
    """Absolute paths; StartupError if two of them are one directory."""
    paths = [os.path.abspath(path) for path in rules.log_dirs(config)]
    if len({os.path.realpath(path) for path in paths}) < len(paths):
        raise StartupError(f"log.dirs names a directory twice: {config[LOG_DIRS]}")
    return paths


def is_loopback(host: str) -> bool:
    if host in ("localhost", "127.0.0.1", "::1"):
        return True
    import ipaddress  # here, because it takes 4 ms and most starts do not need it

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_port(endpoint: Endpoint) -> None:
    if endpoint.port == 0:
        return
    try:
        found = socket.getaddrinfo(
            endpoint.host or None, endpoint.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except socket.gaierror as error:
        raise StartupError(f"listener {endpoint}: the host is not known: {error.strerror}") from error
    for family, kind, protocol, _, address in found:
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(address)
            except OSError as error:
                if error.errno not in IN_USE:
                    continue
                raise StartupError(f"{endpoint.host or '*'}:{endpoint.port} {why_not(error, endpoint.port)}") from error


def why_not(error: OSError, port: int) -> str:
    """Why an address cannot be bound, and what to do."""
    if error.errno == errno.EADDRINUSE:
        other = port + 1 if port < 65535 else 0
        return f"is in use; stop what uses it, or choose another port, for example with --port {other}"
    if error.errno == errno.EACCES:
        return "may not be opened by this user; choose a port from 1024 on, for example with --port 9092"
    return "is not an address of this machine; name one of its own in listeners"


def check_directory(path: str) -> None:
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        above = os.path.dirname(path)
        while not os.path.exists(above):
            above = os.path.dirname(above)
        if not os.access(above, os.W_OK | os.X_OK) or not os.path.isdir(above):
            raise StartupError(f"{path} cannot be created: {above} is not a writable directory") from None
        return
    except OSError as error:
        raise StartupError(f"{path} cannot be used: {error.strerror}") from error
    if not stat.S_ISDIR(mode):
        raise StartupError(f"{path} is not a directory")
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise StartupError(f"{path} cannot be read and written by this user")
    if os.path.exists(os.path.join(path, LOCK_FILE)):
        try:
            DirectoryLock(path).release()
        except DirectoryLockedError as error:
            raise StartupError(f"{error}; stop that one first") from error
        except OSError as error:
            raise StartupError(f"{path} cannot be locked: {error.strerror}") from error
