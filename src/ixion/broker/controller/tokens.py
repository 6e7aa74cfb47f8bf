"""Creates, renews and expires delegation tokens in the tree, and follows the changes that other brokers make.

Every broker writes tokens itself, as in Kafka. The node of a token and the notification of its change are one
transaction. A change is in force on this broker when the call returns, and on the others when they have seen the
notification. The controller's broker removes expired tokens.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from ixion.broker.metadata import token_node
from ixion.broker.metadata.content import CorruptNodeError
from ixion.broker.metadata.ensure import ensure
from ixion.broker.metadata.errors import (
    BadVersionError,
    InvalidPathError,
    MetadataError,
    NoNodeError,
    StoreUnusableError,
)
from ixion.broker.metadata.node import ANY_VERSION, Create, Delete, Operation, Set
from ixion.broker.metadata.session import Event, MetadataSession
from ixion.broker.security.tokens import MOST_TOKENS, Tokens
from ixion.language.model.delegation_token import Token
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.ids import id_text, new_id

logger = logging.getLogger(__name__)

KEPT_MS: Final = 15 * 60 * 1000  # a notification, for brokers that were out of contact


class TokenManager:
    def __init__(
        self,
        session: MetadataSession,
        tokens: Tokens,
        clock_ms: Callable[[], int],
        *,
        max_lifetime_ms: int,
        expiry_time_ms: int,
    ) -> None:
        self.tokens = tokens
        self._session = session
        self._clock_ms = clock_ms
        self._max_lifetime_ms = max_lifetime_ms
        self._expiry_time_ms = expiry_time_ms
        self._turn = asyncio.Lock()  # one change at a time
        self._seen = ""  # the last notification that was followed
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Watch first, then load, so that no change in between is missed."""
        session = self._session
        await ensure(session, token_node.BASE)
        session.watch(token_node.CHANGES, self._follow_soon)
        names = await session.children(token_node.CHANGES)
        self._seen = names[-1] if names else ""
        await self._load()

    async def resume(self, session: MetadataSession) -> None:
        """Continue with another session: all tokens are read again."""
        self._session = session
        await self.start()

    async def _load(self) -> None:
        found = await self._session.children(token_node.TOKENS)
        for token_id in found:
            await self._take(token_id)
        for token in self.tokens.all():
            if token.token_id not in found:
                self.tokens.remove(token.token_id)

    async def create(self, owner: str, requester: str, renewers: tuple[str, ...], lifetime_ms: int) -> Token:
        """Create a token. A lifetime of 0 or less means delegation.token.max.lifetime.ms."""
        async with self._turn:
            if len(self.tokens) >= MOST_TOKENS:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"at most {MOST_TOKENS} delegation tokens are allowed")
            now_ms = self._clock_ms()
            most_ms = self._max_lifetime_ms
            token = Token(
                token_id=id_text(new_id()),
                owner=owner,
                requester=requester,
                renewers=renewers,
                issued_ms=now_ms,
                max_ms=now_ms + (most_ms if lifetime_ms <= 0 else min(lifetime_ms, most_ms)),
                expires_ms=now_ms,
            ).lives_until(now_ms + self._expiry_time_ms)
            await self._write(
                token.token_id, Create(token_node.path_of(token.token_id), token_node.encode_token(token))
            )
            self.tokens.put(token)
            return token

    async def renew(self, principal: str, token_hmac: bytes, period_ms: int) -> int:
        """Renew a token; returns its new expiry. A negative period means delegation.token.expiry.time.ms."""
        async with self._turn:
            if not self._find(principal, token_hmac).is_of_user:
                raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)  # nobody can log in with it: let it expire
            return await self._extend(principal, token_hmac, self._expiry_time_ms if period_ms < 0 else period_ms)

    async def expire(self, principal: str, token_hmac: bytes, period_ms: int) -> int:
        """Set the expiry of a token and return it. A negative period removes the token at once."""
        async with self._turn:
            if period_ms < 0:
                await self._remove(self._find(principal, token_hmac).token_id)
                return self._clock_ms()
            return await self._extend(principal, token_hmac, period_ms)

    async def remove_expired(self) -> None:
        """Remove expired tokens; runs every delegation.token.expiry.check.interval.ms."""
        for token in self.tokens.all():
            if token.is_over(self._clock_ms()):
                async with self._turn:
                    version = await self._take(token.token_id)  # another broker may have renewed it meanwhile
                    current = self.tokens.get(token.token_id)
                    if version is not None and current is not None and current.is_over(self._clock_ms()):
                        await self._remove(token.token_id, version)

    def remove_expired_soon(self) -> None:
        self._run(self.remove_expired(), "expired delegation tokens could not be removed")

    def _find(self, principal: str, token_hmac: bytes) -> Token:
        token = self.tokens.find(token_hmac)
        if token is None:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        if not token.concerns(principal):
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
        if token.is_over(self._clock_ms()):
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        return token

    async def _extend(self, principal: str, token_hmac: bytes, period_ms: int) -> int:
        """Another broker may change the token at the same time: only what was read is replaced."""
        while True:
            known = self.tokens.find(token_hmac)
            version = None if known is None else await self._take(known.token_id)
            token = self._find(principal, token_hmac)
            extended = token.lives_until(self._clock_ms() + period_ms)
            change = Set(token_node.path_of(token.token_id), token_node.encode_token(extended), version or 0)
            try:
                await self._write(token.token_id, change)
            except BadVersionError:
                continue
            self.tokens.put(extended)
            return extended.expires_ms

    async def _remove(self, token_id: str, version: int = ANY_VERSION) -> None:
        """With a version: unless it was changed since."""
        try:
            await self._write(token_id, Delete(token_node.path_of(token_id), version))
        except BadVersionError:
            return
        self.tokens.remove(token_id)

    async def _write(self, token_id: str, change: Operation) -> None:
        notification = Create(token_node.NEW_CHANGE, token_id.encode(), sequential=True)
        try:
            await self._session.multi([change, notification])
        except NoNodeError:  # another broker has removed it
            self.tokens.remove(token_id)
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND) from None
        except BadVersionError:
            raise
        except (MetadataError, StoreUnusableError) as error:
            logger.error("a delegation token could not be stored: %s", error)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the token could not be stored: {error}") from error

    async def _take(self, token_id: str) -> int | None:
        """Put the token of the tree in force. Returns the version of its node; None if there is no such token."""
        try:
            node = await self._session.get(token_node.path_of(token_id))
            self.tokens.put(token_node.decode_token(token_id, node.data))
            return node.stat.version
        except NoNodeError:
            self.tokens.remove(token_id)
        except (CorruptNodeError, InvalidPathError) as error:
            logger.error("a delegation token is ignored: %s", error)
            self.tokens.remove(token_id)
        return None

    def _follow_soon(self, _event: Event) -> None:
        self._run(self._follow(_event), "changes of delegation tokens could not be followed")

    async def _follow(self, event: Event) -> None:
        session = self._session
        async with self._turn:
            if event.kind.name == "RESUMED":
                await self._load()  # notifications may have been deleted
            names = await session.children(token_node.CHANGES)
            for name in [name for name in names if name > self._seen]:
                try:
                    await self._take((await session.get(f"{token_node.CHANGES}/{name}")).data.decode(errors="replace"))
                except NoNodeError:
                    pass
                self._seen = name
            await self._forget_old(names)

    async def _forget_old(self, names: list[str]) -> None:
        oldest = self._clock_ms() - KEPT_MS
        for name in names:
            path = f"{token_node.CHANGES}/{name}"
            stat = await self._session.exists(path)
            if stat is None or stat.created_ms > oldest:
                return
            try:
                await self._session.delete(path)
            except NoNodeError:
                pass

    def _run(self, work: Coroutine[Any, Any, None], failed: str) -> None:
        async def run() -> None:
            try:
                await work
            except Exception:
                logger.exception(failed)

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
