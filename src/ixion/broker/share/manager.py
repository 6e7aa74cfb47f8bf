"""The share partitions that this broker leads, and the fetches that wait for them.

A share partition is made by the first fetch of a group, and dropped when

- this broker no longer leads the partition, or leads it with a new epoch,
- another leader or an administrator has written its state (fencing),
- it could not be loaded (the fetch gets the error, the next one tries again),
- the last session of the group here has ended, everything is stored and no dead letter is owed: an idle group costs
  nothing here, and after its offsets were altered the next member starts from these.

A waiting fetch watches two keys for each partition: (topic, partition) for what happens to the log, and (group, topic,
partition) for what other members do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from ixion.broker.replica.share_persister import SharePartitionKey, SharePersister
from ixion.broker.share.figures import ShareFigures
from ixion.broker.share.leader import ShareLeader
from ixion.broker.share.letter_writer import Post
from ixion.broker.share.session import Place, SessionKey, ShareSession, ShareSessions
from ixion.broker.share.terms import Terms
from ixion.language.model.errors import ErrorCode
from ixion.purgatory.purgatory import DelayedOperationPurgatory

if TYPE_CHECKING:
    from ixion.broker.replica.manager import ReplicaManager
    from ixion.broker.replica.partition import Partition
    from ixion.timer.timer import Timer

PURGE_INTERVAL: Final = 1000
SHARDS: Final = 16
MOST_OWING: Final = 10_000  # share partitions, for one without members to be kept until its dead letters are written
Key = TypeVar("Key")


class ShareManager:
    def __init__(
        self,
        replicas: ReplicaManager,
        persister: SharePersister,
        *,
        timer: Timer,
        clock_ms: Callable[[], int],
        monotonic_ms: Callable[[], int],
        call_soon: Callable[..., object],
        terms_of: Callable[[str], Terms],
        most_sessions: int = 2_000,
        purge_interval: int = PURGE_INTERVAL,
        post: Post | None = None,
    ) -> None:
        """`post` writes dead letters; without one, records wait for theirs."""
        self.replicas = replicas
        self.persister = persister
        self.timer = timer
        self.terms_of = terms_of
        self.call_soon = call_soon
        self.post = post
        self.figures = ShareFigures()
        self.leaders: dict[SharePartitionKey, ShareLeader] = {}
        self.purgatory = DelayedOperationPurgatory(
            "ShareFetch", timer=timer, purge_interval=purge_interval, shards=SHARDS
        )
        self._of_group: dict[str, set[ShareLeader]] = {}
        self._of_partition: dict[tuple[str, int], set[ShareLeader]] = {}
        self.sessions = ShareSessions(most_sessions)
        self._sessions: dict[str, int] = {}  # how many each group has
        self._monotonic_ms = monotonic_ms
        # Time goes on from the wall clock of the start: setting that clock must not move the end of a lock.
        self._ahead_ms = clock_ms() - monotonic_ms()

    def now_ms(self) -> int:
        return self._monotonic_ms() + self._ahead_ms

    def leader_of(self, group: str, partition: Partition) -> ShareLeader:
        """The share partition, which may still be loading."""
        key = SharePartitionKey(group, partition.topic_id, partition.number)
        leader = self.leaders.get(key)
        if leader is not None and (leader.partition is not partition or leader.leader_epoch != partition.leader_epoch):
            self.drop(leader, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            leader = None
        if leader is None:
            leader = self.leaders[key] = ShareLeader(self, key, partition)
            self._of_group.setdefault(group, set()).add(leader)
            self._of_partition.setdefault(partition.key, set()).add(leader)
            leader.load()
        return leader

    def known(self, group: str, topic_id: bytes, number: int) -> ShareLeader | None:
        return self.leaders.get(SharePartitionKey(group, topic_id, number))

    def drop(self, leader: ShareLeader, code: ErrorCode) -> None:
        """Forget a share partition. Fetches that wait for it get the code."""
        if self.leaders.get(leader.key) is not leader:
            return
        del self.leaders[leader.key]
        remove(self._of_group, leader.key.group, leader)
        remove(self._of_partition, leader.partition.key, leader)
        leader.failure = code
        leader.close()
        self.wake(leader)

    def wake(self, leader: ShareLeader) -> None:
        """Something may be available for the fetches of the group. One that takes it leaves nothing to the others."""
        self.purgatory.check_and_complete(leader.waiting_key)

    # Events.

    def partition_moved_on(self, key: tuple[str, int]) -> None:
        """More can be read of a partition, or its leader has changed."""
        self.purgatory.check_and_complete(key)

    def on_leadership(self, topic: str, number: int, leader_epoch: int) -> None:
        for leader in list(self._of_partition.get((topic, number), ())):
            if leader.leader_epoch != leader_epoch:
                self.drop(leader, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    # Sessions.

    def begin_session(self, key: SessionKey, principal: str, places: list[Place]) -> ShareSession | None:
        """None: there are too many. Otherwise a session that the member has ends; it keeps what it has acquired."""
        before = self.sessions.sessions.get(key)
        session = self.sessions.begin(key, principal, places)
        if before is not None and not before.open:
            self._count(before.group, -1)
        if session is not None:
            self._count(session.group, 1)
        return session

    def end_session(self, session: ShareSession) -> None:
        """Release what the member has here, and forget the group if this was its last session."""
        if not session.open:
            return
        self.sessions.end(session)
        self._count(session.group, -1)
        for leader in list(self._of_group.get(session.group, ())):
            leader.release(session.member)
            self.is_idle(leader)

    def _count(self, group: str, more: int) -> None:
        count = self._sessions.get(group, 0) + more
        if count:
            self._sessions[group] = count
        else:
            del self._sessions[group]

    def is_idle(self, leader: ShareLeader) -> None:
        """Everything of the share partition is stored. Forget it if nobody fetches from it."""
        owes = leader.owes_letters and len(self.leaders) <= MOST_OWING
        if leader.key.group not in self._sessions and leader.is_idle and not owes:
            self.drop(leader, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def shutdown(self) -> None:
        self.purgatory.shutdown()
        for leader in list(self.leaders.values()):
            leader.close()
        self.leaders.clear()

    # Figures.

    def tallies(self, states: tuple[int, ...]) -> list[int]:
        """How many records are in each of these states, over all share partitions."""
        cores = [leader.core for leader in self.leaders.values() if leader.core is not None]
        return [sum([core.runs.tallies[state] for core in cores]) for state in states]

    @property
    def runs(self) -> int:
        return sum([len(leader.core.runs) for leader in self.leaders.values() if leader.core is not None])

    @property
    def stopped(self) -> int:
        """Share partitions that deliver nothing new because they have too many runs."""
        return sum([leader.core is not None and leader.core.is_full_of_runs for leader in self.leaders.values()])


def remove(index: dict[Key, set[ShareLeader]], key: Key, leader: ShareLeader) -> None:
    found = index.get(key)
    if found is not None:
        found.discard(leader)
        if not found:
            del index[key]
