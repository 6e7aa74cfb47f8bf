"""The administrator on asyncio: the calls of `ixion.clients.Admin`, with await.

async with Admin("127.0.0.1:9092") as admin:
    await admin.list_topics()
    await admin.within(5).list_topics()
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Coroutine
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack

from ixion.clients.address import Bootstrap, parse_bootstrap
from ixion.clients.admin import (
    acls,
    cluster,
    configs,
    group_offsets,
    groups,
    offsets,
    quotas,
    replicas,
    share_groups,
    streams_groups,
    tokens,
    topics,
    transactions,
    users,
)
from ixion.clients.admin.machine import AdminMachine, Running
from ixion.clients.admin.plan import Call, Plan, check_lists
from ixion.clients.admin.settings import AdminOptions, read_admin_settings
from ixion.clients.aio.engine import AioEngine
from ixion.clients.engine import random
from ixion.clients.log import warn_unclosed

P = ParamSpec("P")
T = TypeVar("T")


def awaited(
    plan: Callable[Concatenate[Call, P], Plan[T]],
) -> Callable[Concatenate[Calls, P], Coroutine[Any, Any, T]]:
    """The plan as a coroutine method."""

    @wraps(plan)
    async def method(self: Calls, /, *args: P.args, **kwargs: P.kwargs) -> T:
        check_lists(plan, args, kwargs)
        found: T = await self._admin.run(lambda call: plan(call, *args, **kwargs), self._seconds)
        return found

    return method


class Calls:
    """All calls, with one deadline for each."""

    def __init__(self, admin: AdminRunner, seconds: float) -> None:
        self._admin = admin
        self._seconds = seconds

    # The blocking face is made from here on (python -m devtools.blocking) …

    create_acls = awaited(acls.create_acls)
    delete_acls = awaited(acls.delete_acls)
    describe_acls = awaited(acls.describe_acls)

    describe_cluster = awaited(cluster.describe_cluster)
    describe_features = awaited(cluster.describe_features)
    describe_metadata_quorum = awaited(cluster.describe_metadata_quorum)
    update_features = awaited(cluster.update_features)

    alter_configs = awaited(configs.alter_configs)
    describe_configs = awaited(configs.describe_configs)
    list_config_resources = awaited(configs.list_config_resources)

    alter_group_offsets = awaited(group_offsets.alter_group_offsets)
    delete_group_offsets = awaited(group_offsets.delete_group_offsets)
    list_group_offsets = awaited(group_offsets.list_group_offsets)

    delete_groups = awaited(groups.delete_groups)
    describe_classic_groups = awaited(groups.describe_classic_groups)
    describe_consumer_groups = awaited(groups.describe_consumer_groups)
    describe_groups = awaited(groups.describe_groups)
    list_groups = awaited(groups.list_groups)
    remove_members = awaited(groups.remove_members)

    delete_records = awaited(offsets.delete_records)
    list_offsets = awaited(offsets.list_offsets)
    list_replica_ends = awaited(offsets.list_replica_ends)

    alter_client_quotas = awaited(quotas.alter_client_quotas)
    describe_client_quotas = awaited(quotas.describe_client_quotas)

    alter_partition_reassignments = awaited(replicas.alter_partition_reassignments)
    alter_replica_log_dirs = awaited(replicas.alter_replica_log_dirs)
    describe_log_dirs = awaited(replicas.describe_log_dirs)
    describe_replica_log_dirs = awaited(replicas.describe_replica_log_dirs)
    elect_leaders = awaited(replicas.elect_leaders)
    list_partition_reassignments = awaited(replicas.list_partition_reassignments)

    alter_share_group_offsets = awaited(share_groups.alter_share_group_offsets)
    delete_share_group_offsets = awaited(share_groups.delete_share_group_offsets)
    describe_share_groups = awaited(share_groups.describe_share_groups)
    list_share_group_offsets = awaited(share_groups.list_share_group_offsets)
    describe_streams_groups = awaited(streams_groups.describe_streams_groups)

    create_delegation_token = awaited(tokens.create_delegation_token)
    describe_delegation_tokens = awaited(tokens.describe_delegation_tokens)
    expire_delegation_token = awaited(tokens.expire_delegation_token)
    renew_delegation_token = awaited(tokens.renew_delegation_token)

    create_partitions = awaited(topics.create_partitions)
    create_topics = awaited(topics.create_topics)
    delete_topics = awaited(topics.delete_topics)
    delete_topics_by_id = awaited(topics.delete_topics_by_id)
    describe_topics = awaited(topics.describe_topics)
    describe_topics_by_id = awaited(topics.describe_topics_by_id)
    list_topics = awaited(topics.list_topics)

    abort_transaction = awaited(transactions.abort_transaction)
    describe_producers = awaited(transactions.describe_producers)
    describe_transactions = awaited(transactions.describe_transactions)
    fence_producers = awaited(transactions.fence_producers)
    find_hanging = awaited(transactions.find_hanging)
    list_transactions = awaited(transactions.list_transactions)
    open_transactions = awaited(transactions.open_transactions)

    alter_user_scram_credentials = awaited(users.alter_user_scram_credentials)
    describe_user_scram_credentials = awaited(users.describe_user_scram_credentials)

    # … to here.


class Waiters:
    """Tasks that wait for their calls. It does not refer to the administrator (`AioEngine`)."""

    def __init__(self) -> None:
        self._waiters: dict[Running, asyncio.Future[None]] = {}

    async def until_done(self, running: Running, engine: AioEngine) -> None:
        """The loop refers to the caller meanwhile, so that its task and its administrator are not garbage-collected."""
        engine.pump()
        try:
            while not running.is_done:
                if running.work is None:
                    waiter = self._waiters[running] = engine.loop.create_future()
                    await waiter
                else:
                    await engine.loop.run_in_executor(None, running.do_work)
                    running.work = None
                    engine.pump()
        finally:
            self._waiters.pop(running, None)

    def look(self) -> None:
        for running, waiter in self._waiters.items():
            if (running.is_done or running.work is not None) and not waiter.done():
                waiter.set_result(None)


class AdminRunner:
    _is_closed = True  # until it is made

    def __init__(self, bootstrap: Bootstrap, settings: AdminOptions) -> None:
        found = read_admin_settings(settings)
        self.timeout_s = found.timeout_s
        self._machine = AdminMachine(parse_bootstrap(bootstrap), found.client, random, defers=True)
        self._waiters = Waiters()
        self._engine = AioEngine(self._machine, self._waiters.look)
        self._made_in = os.getpid()
        self._is_closed = False

    def __del__(self) -> None:
        if not self._is_closed and self._made_in == os.getpid() and not sys.is_finalizing():
            self._is_closed = True
            self._engine.abandon()
            warn_unclosed(self, "administrator", "")

    async def run(self, plan: Callable[[Call], Plan[Any]], seconds: float) -> Any:
        if self._is_closed:
            raise RuntimeError("the administrator is closed")
        self._engine.check()
        running = self._machine.start(plan, seconds, time.monotonic())
        try:
            await self._waiters.until_done(running, self._engine)
        finally:
            self._machine.cancel(running)
        return running.take()

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._machine.close(time.monotonic())
        self._engine.stop()
        self._engine.release()
        await self._engine.join()


class Admin(Calls):
    """Administers a cluster, on asyncio."""

    def __init__(self, bootstrap: Bootstrap = "", **settings: Unpack[AdminOptions]) -> None:
        """Inside a coroutine. TypeError or ValueError, naming it, for a wrong setting or address."""
        runner = AdminRunner(bootstrap, settings)
        super().__init__(runner, runner.timeout_s)

    # The blocking face is made from here on (python -m devtools.blocking) …

    async def __aenter__(self) -> Admin:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections. Calling it twice is harmless."""
        await self._admin.close()

    def within(self, seconds: float) -> Calls:
        """The same calls with another deadline."""
        return Calls(self._admin, seconds)

    # … to here.
