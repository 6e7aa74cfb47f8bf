"""Users in the data directory of a broker that is not running: `/config/users/NAME` of its metadata."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from ixion.broker.metadata import paths
from ixion.broker.metadata.config_node import decode_config, encode_config
from ixion.broker.metadata.embedded import FILE_NAME, EmbeddedStore
from ixion.broker.metadata.embedded_session import EmbeddedSession
from ixion.broker.metadata.errors import MetadataError, StoreUnusableError
from ixion.clients.admin.users import ScramMechanism
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.sasl.scram import MECHANISMS, new_credential, parse_credential

USERS: Final = "users"
TIMEOUT_MS: Final = 60_000


@contextmanager
def opened(directory: str) -> Iterator[EmbeddedSession]:
    """KafkaError if it cannot be used, for example while a broker runs on it."""
    os.makedirs(directory, exist_ok=True)
    try:
        store = EmbeddedStore(os.path.join(directory, FILE_NAME))
        try:
            yield store.open_session(TIMEOUT_MS)
        finally:
            store.close()
    except (MetadataError, StoreUnusableError) as error:
        text = f"{error}; if a broker runs on {directory}, leave out --data and ask it"
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text) from None


def add_user(directory: str, name: str, password: str, mechanisms: Sequence[str], iterations: int) -> None:
    with opened(directory) as session:
        for path in (paths.CONFIG, f"{paths.CONFIG}/{USERS}"):
            if session.exists(path) is None:
                session.create(path)
        config = read(session, name) or {}
        config |= {each: new_credential(each, password, iterations).text() for each in mechanisms}
        write(session, name, config)


def list_users(directory: str) -> dict[str, list[ScramMechanism]]:
    found: dict[str, list[ScramMechanism]] = {}
    with opened(directory) as session:
        folder = f"{paths.CONFIG}/{USERS}"
        for entity in session.children(folder) if session.exists(folder) is not None else ():
            name = paths.plain(entity)
            config = read(session, name) or {}
            known = {each: parse_credential(config[each]) for each in MECHANISMS if each in config}
            if known:
                found[name] = [ScramMechanism(each, credential.iterations) for each, credential in known.items()]
    return found


def remove_user(directory: str, name: str) -> None:
    with opened(directory) as session:
        config = read(session, name) or {}
        if not MECHANISMS.keys() & config.keys():
            raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, f"user {name!r} has no SCRAM credentials")
        write(session, name, {key: value for key, value in config.items() if key not in MECHANISMS})


def read(session: EmbeddedSession, name: str) -> dict[str, str] | None:
    path = paths.config(USERS, paths.sanitized(name))
    return None if session.exists(path) is None else decode_config(f"{USERS}/{name}", session.get(path).data)


def write(session: EmbeddedSession, name: str, config: dict[str, str]) -> None:
    path = paths.config(USERS, paths.sanitized(name))
    if session.exists(path) is None:
        session.create(path, encode_config(config))
    else:
        session.set(path, encode_config(config))
