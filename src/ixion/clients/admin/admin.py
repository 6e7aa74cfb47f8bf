"""The administrator: every call of Kafka's AdminClient that brokers of today answer.

    from ixion.clients import Admin
    from ixion.clients.admin.topics import NewTopic

    with Admin("127.0.0.1:9092") as admin:
        admin.create_topics([NewTopic("orders", partitions=6)]).check()
        admin.within(5).list_topics()                       # a deadline of its own

Each method runs the plan of its name, with the plan's parameters except the first; the plan documents it. Calls about
many things return `Results`: a value or a fault for each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Concatenate, ParamSpec, TypeVar, Unpack

from ixion.clients.address import Bootstrap
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
from ixion.clients.admin.plan import Call, Plan, check_lists
from ixion.clients.admin.runner import AdminRunner
from ixion.clients.admin.settings import AdminOptions

P = ParamSpec("P")
T = TypeVar("T")


def waited(plan: Callable[Concatenate[Call, P], Plan[T]]) -> Callable[Concatenate[Calls, P], T]:
    """The plan as a method that waits for its result."""

    @wraps(plan)
    def method(self: Calls, /, *args: P.args, **kwargs: P.kwargs) -> T:
        check_lists(plan, args, kwargs)
        return self._admin.run_within(self._seconds, plan, *args, **kwargs)

    return method


class Calls:
    """All calls, with one deadline for each."""

    def __init__(self, admin: AdminRunner, seconds: float) -> None:
        self._admin = admin
        self._seconds = seconds

    # Made from aio/admin.py by devtools.blocking, from here on …

    create_acls = waited(acls.create_acls)
    delete_acls = waited(acls.delete_acls)
    describe_acls = waited(acls.describe_acls)

    describe_cluster = waited(cluster.describe_cluster)
    describe_features = waited(cluster.describe_features)
    describe_metadata_quorum = waited(cluster.describe_metadata_quorum)
    update_features = waited(cluster.update_features)

    alter_configs = waited(configs.alter_configs)
    describe_configs = waited(configs.describe_configs)
    list_config_resources = waited(configs.list_config_resources)

    alter_group_offsets = waited(group_offsets.alter_group_offsets)
    delete_group_offsets = waited(group_offsets.delete_group_offsets)
    list_group_offsets = waited(group_offsets.list_group_offsets)

    delete_groups = waited(groups.delete_groups)
    describe_classic_groups = waited(groups.describe_classic_groups)
    describe_consumer_groups = waited(groups.describe_consumer_groups)
    describe_groups = waited(groups.describe_groups)
    list_groups = waited(groups.list_groups)
    remove_members = waited(groups.remove_members)

    delete_records = waited(offsets.delete_records)
    list_offsets = waited(offsets.list_offsets)
    list_replica_ends = waited(offsets.list_replica_ends)

    alter_client_quotas = waited(quotas.alter_client_quotas)
    describe_client_quotas = waited(quotas.describe_client_quotas)

    alter_partition_reassignments = waited(replicas.alter_partition_reassignments)
    alter_replica_log_dirs = waited(replicas.alter_replica_log_dirs)
    describe_log_dirs = waited(replicas.describe_log_dirs)
    describe_replica_log_dirs = waited(replicas.describe_replica_log_dirs)
    elect_leaders = waited(replicas.elect_leaders)
    list_partition_reassignments = waited(replicas.list_partition_reassignments)

    alter_share_group_offsets = waited(share_groups.alter_share_group_offsets)
    delete_share_group_offsets = waited(share_groups.delete_share_group_offsets)
    describe_share_groups = waited(share_groups.describe_share_groups)
    list_share_group_offsets = waited(share_groups.list_share_group_offsets)
    describe_streams_groups = waited(streams_groups.describe_streams_groups)

    create_delegation_token = waited(tokens.create_delegation_token)
    describe_delegation_tokens = waited(tokens.describe_delegation_tokens)
    expire_delegation_token = waited(tokens.expire_delegation_token)
    renew_delegation_token = waited(tokens.renew_delegation_token)

    create_partitions = waited(topics.create_partitions)
    create_topics = waited(topics.create_topics)
    delete_topics = waited(topics.delete_topics)
    delete_topics_by_id = waited(topics.delete_topics_by_id)
    describe_topics = waited(topics.describe_topics)
    describe_topics_by_id = waited(topics.describe_topics_by_id)
    list_topics = waited(topics.list_topics)

    abort_transaction = waited(transactions.abort_transaction)
    describe_producers = waited(transactions.describe_producers)
    describe_transactions = waited(transactions.describe_transactions)
    fence_producers = waited(transactions.fence_producers)
    find_hanging = waited(transactions.find_hanging)
    list_transactions = waited(transactions.list_transactions)
    open_transactions = waited(transactions.open_transactions)

    alter_user_scram_credentials = waited(users.alter_user_scram_credentials)
    describe_user_scram_credentials = waited(users.describe_user_scram_credentials)

    # … to here.


class Admin(Calls):
    """Administers a cluster: topics, groups, settings, users, access rules."""

    def __init__(self, bootstrap: Bootstrap = "", **settings: Unpack[AdminOptions]) -> None:
        """TypeError or ValueError, naming it, for a wrong setting or address."""
        runner = AdminRunner(bootstrap, **settings)
        super().__init__(runner, runner.timeout_s)

    # Made from aio/admin.py by devtools.blocking, from here on …

    def __enter__(self) -> Admin:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections. Calling it twice is harmless."""
        self._admin.close()

    def within(self, seconds: float) -> Calls:
        """The same calls with another deadline."""
        return Calls(self._admin, seconds)

    # … to here.
