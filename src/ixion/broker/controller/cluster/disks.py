"""Log directories that failed, or have room again.

A broker reports this by a node; its answer to LeaderAndIsr then says which replicas work.
"""

from __future__ import annotations

import logging

from ixion.broker.controller.cluster.replica_machine import put_online
from ixion.broker.controller.cluster.states import ReplicaPhase
from ixion.broker.controller.cluster.term import Term
from ixion.broker.metadata import paths
from ixion.broker.metadata.content import CorruptNodeError
from ixion.broker.metadata.errors import NoNodeError
from ixion.broker.metadata.notification_node import decode_log_dir_event

logger = logging.getLogger(__name__)


async def follow_failed_disks(term: Term) -> None:
    cluster = term.cluster
    brokers = set()
    notices = [f"{paths.LOG_DIR_EVENTS}/{name}" for name in await term.session.children(paths.LOG_DIR_EVENTS)]
    for path in notices:
        try:
            brokers.add(decode_log_dir_event((await term.session.get(path)).data))
        except NoNodeError:
            continue
        except CorruptNodeError as error:
            logger.error("the notice at %s is ignored: %s", path, error)
    batch = term.batch()
    for replica in cluster.replicas_on(brokers & cluster.brokers.keys()):
        # Lost replicas too: a full disk may have room again.
        is_there = cluster.replica_phase(replica) is ReplicaPhase.ONLINE or replica in cluster.failed_disks
        if replica[0] not in cluster.doomed and is_there:
            put_online(term, batch, (replica,))
    await term.send(batch)
    await term.tree.delete_all(notices)
