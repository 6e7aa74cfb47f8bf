"""Changes access rules in the tree, and follows the changes that other brokers make.

Every broker writes rules itself, as in Kafka. It sets the node of a resource pattern only at the version that it read,
and reads the node again if another broker was faster. The node and its change notification are one transaction. A rule
is in force on this broker when the call returns, and on the others when they have seen the notification.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from ixion.broker.acl.rules import Rules
from ixion.broker.metadata import acl_node
from ixion.broker.metadata.content import CorruptNodeError
from ixion.broker.metadata.ensure import ensure
from ixion.broker.metadata.errors import (
    BadVersionError,
    InvalidPathError,
    MetadataError,
    NodeExistsError,
    NoNodeError,
    StoreUnusableError,
    TooLargeError,
)
from ixion.broker.metadata.node import ANY_VERSION, Create, Delete, Operation, Set
from ixion.broker.metadata.session import Event, MetadataSession
from ixion.language.model.acl_binding import Binding, Entry, Filter, ResourcePattern
from ixion.language.model.acl_names import PatternKind
from ixion.language.model.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

TRIES: Final = 10  # to write a node that other brokers write as well
KEPT_MS: Final = 15 * 60 * 1000  # a notification, for brokers that were out of contact
MOST_RULES: Final = 100_000  # in all
MOST_ON_ONE: Final = 5_000  # of one resource pattern: they are one node, which ZooKeeper limits to 1 MiB

Change = Callable[[tuple[Entry, ...]], tuple[Entry, ...]]


class Acls:
    def __init__(self, session: MetadataSession, rules: Rules, clock_ms: Callable[[], int]) -> None:
        self.rules = rules
        self._session = session
        self._clock_ms = clock_ms
        self._turn = asyncio.Lock()  # one change at a time
        self._seen: dict[PatternKind, str] = {}  # the last notification that was followed
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Watch first, then load, so that no change in between is missed.

        CorruptNodeError if rules cannot be read: without them the broker might allow what they deny.
        """
        await self._begin(strict=True)

    async def resume(self, session: MetadataSession) -> None:
        """Continue with another session: all rules are read again. Rules that cannot be read stay as they were: a
        broker that ended its session because of them would never be registered again."""
        self._session = session
        await self._begin(strict=False)

    async def _begin(self, *, strict: bool) -> None:
        session = self._session
        await ensure(session, acl_node.BASE)
        for pattern, path in acl_node.CHANGES.items():
            session.watch(path, self._follow_soon)
            names = await session.children(path)
            self._seen[pattern] = names[-1] if names else ""
        await self._load(strict=strict)

    async def _load(self, *, strict: bool) -> None:
        session = self._session
        found: set[ResourcePattern] = set()
        for pattern, root in acl_node.ROOTS.items():
            for title in await session.children(root):
                kind = acl_node.kind_of(title)
                if kind is None:
                    logger.warning("access rules for resources of type %s are ignored: the type is unknown", title)
                    continue
                for name in await session.children(f"{root}/{title}"):
                    found.add(ResourcePattern(kind, name, pattern))
        for resource in [*found, *(known for known in list(self.rules.resources) if known not in found)]:
            if strict:
                self.rules.put(resource, (await self._read(resource))[0])
            else:
                await self._take(resource)

    async def create(self, bindings: Iterable[Binding]) -> dict[Binding, KafkaError]:
        """Add valid rules. Returns those that could not be added, each with the reason."""
        wanted: dict[ResourcePattern, list[Binding]] = {}
        for binding in bindings:
            wanted.setdefault(binding.resource, []).append(binding)
        failed: dict[Binding, KafkaError] = {}
        async with self._turn:
            for resource, some in wanted.items():
                added = tuple(binding.entry for binding in some)
                try:
                    await self._update(resource, partial(self._with, added))
                except KafkaError as error:
                    failed |= dict.fromkeys(some, error)
        return failed

    def _with(self, added: tuple[Entry, ...], current: tuple[Entry, ...]) -> tuple[Entry, ...]:
        wanted = tuple(dict.fromkeys((*current, *added)))
        if len(wanted) > MOST_ON_ONE:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"a resource may have at most {MOST_ON_ONE} rules")
        if self.rules.count + len(wanted) - len(current) > MOST_RULES:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"a cluster may have at most {MOST_RULES} rules")
        return wanted

    async def delete(self, filters: Sequence[Filter]) -> list[dict[Binding, KafkaError | None]]:
        """Remove matching rules. Returns for each filter the rules that it matched first, with the failure of each."""
        results: list[dict[Binding, KafkaError | None]] = [{} for _ in filters]
        async with self._turn:
            resources = dict.fromkeys(self.rules.resources)
            for each in filters:  # another broker may have created a pattern that a filter names exactly
                if each.name is not None and each.kind > 1 and each.pattern in acl_node.ROOTS:
                    resources[ResourcePattern(each.kind, each.name, each.pattern)] = None
            for resource in resources:
                matching = [(place, each) for place, each in enumerate(filters) if each.matches_resource(resource)]
                if matching:
                    await self._remove(resource, matching, results)
        return results

    async def _remove(
        self,
        resource: ResourcePattern,
        matching: list[tuple[int, Filter]],
        results: list[dict[Binding, KafkaError | None]],
    ) -> None:
        removed: dict[Binding, int] = {}

        def change(current: tuple[Entry, ...]) -> tuple[Entry, ...]:
            removed.clear()
            for entry in current:
                for place, each in matching:
                    if each.matches_entry(entry):
                        removed[Binding(resource, entry)] = place
                        break
            return tuple(entry for entry in current if Binding(resource, entry) not in removed)

        problem: KafkaError | None = None
        try:
            await self._update(resource, change)
        except KafkaError as error:
            problem = error
        for binding, place in removed.items():
            results[place][binding] = problem

    async def _update(self, resource: ResourcePattern, change: Change) -> None:
        session = self._session
        path = acl_node.path_of(resource)
        for _ in range(TRIES):
            try:
                current, version = await self._read(resource)
                wanted = change(current)
                if wanted != current:
                    await session.multi(operations(resource, path, wanted, version))
                self.rules.put(resource, wanted)
                return
            except (BadVersionError, NodeExistsError, NoNodeError):
                await ensure(session, acl_node.BASE)
            except CorruptNodeError as error:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
            except (InvalidPathError, TooLargeError) as error:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"the rules could not be stored: {error}") from error
            except (MetadataError, StoreUnusableError) as error:
                logger.error("access rules could not be stored: %s", error)
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the rules could not be stored: {error}") from error
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"other brokers changed the same rules {TRIES} times in a row")

    async def _read(self, resource: ResourcePattern) -> tuple[tuple[Entry, ...], int]:
        """The rules of a pattern and the version of its node; -1 if there is none."""
        try:
            node = await self._session.get(acl_node.path_of(resource))
        except NoNodeError:
            return (), ANY_VERSION
        return acl_node.decode_acls(resource, node.data), node.stat.version

    async def _take(self, resource: ResourcePattern) -> None:
        """Put the rules of the tree in force. Rules that cannot be read stay as they were, which is logged."""
        try:
            entries, _ = await self._read(resource)
        except CorruptNodeError as error:
            logger.error("access rules stay as they were: %s", error)
            return
        self.rules.put(resource, entries)

    def _follow_soon(self, event: Event) -> None:
        task = asyncio.get_running_loop().create_task(self._follow(event))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self, event: Event) -> None:
        try:
            async with self._turn:
                if event.kind.name == "RESUMED":
                    await self._load(strict=False)  # notifications may have been deleted
                for pattern in acl_node.CHANGES:
                    await self._follow_new(pattern)
        except Exception:
            logger.exception("changes of access rules could not be followed")

    async def _follow_new(self, pattern: PatternKind) -> None:
        session = self._session
        root = acl_node.CHANGES[pattern]
        names = await session.children(root)
        fresh = [name for name in names if name > self._seen[pattern]]
        for name in fresh:
            try:
                await self._take(acl_node.decode_acl_change(pattern, (await session.get(f"{root}/{name}")).data))
            except NoNodeError:
                continue
            except CorruptNodeError as error:
                logger.error("a change of access rules is ignored: %s", error)
        if fresh:
            self._seen[pattern] = fresh[-1]
            await self._forget_old(root, names)

    async def _forget_old(self, root: str, names: list[str]) -> None:
        oldest = self._clock_ms() - KEPT_MS
        for name in names:
            stat = await self._session.exists(f"{root}/{name}")
            if stat is None or stat.created_ms > oldest:
                return
            try:
                await self._session.delete(f"{root}/{name}")
            except NoNodeError:
                pass

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()


def operations(resource: ResourcePattern, path: str, wanted: tuple[Entry, ...], version: int) -> list[Operation]:
    """The operations that change the node and write the notification."""
    change: Operation
    if version == ANY_VERSION:
        change = Create(path, acl_node.encode_acls(wanted))
    elif wanted:
        change = Set(path, acl_node.encode_acls(wanted), version)
    else:
        change = Delete(path, version)
    notification = f"{acl_node.CHANGES[resource.pattern]}/{acl_node.CHANGE}"
    return [change, Create(notification, acl_node.encode_acl_change(resource), sequential=True)]
