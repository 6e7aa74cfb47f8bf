"""Offsets of a group: read from its coordinator (OffsetFetch) and committed to it (OffsetCommit)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from ixion.clients.core.checks import check_long
from ixion.clients.core.connection import NEVER, ConnectionMachine, Outcome, Pending
from ixion.clients.core.consumer.errand import Errand
from ixion.clients.core.consumer.errors import CommitFailedError, RebalanceInProgressError
from ixion.clients.faults import GarbledError, error_code
from ixion.clients.metadata import TopicPartition, by_topic
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ixion.language.protocol.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey

if TYPE_CHECKING:
    from ixion.clients.core.consumer.coordinator import Coordinator
    from ixion.clients.core.consumer.member import Member

LAST_BY_NAME: Final = 9  # version 10 of both names topics by id only
FIRST_OF_MANY: Final = 8  # OffsetFetch asks for several groups from then on
FIRST_STABLE: Final = 7  # OffsetFetch can leave out offsets of open transactions
REFUSALS: Final = 4  # of the last automatic commit, before unknown partitions are left out
MEMBERS_FROM: Final = 7  # OffsetCommit knows static members
OUTDATED: Final = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.FENCED_MEMBER_EPOCH,
)
MOVED: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT)


class OffsetAndMetadata(NamedTuple):
    """A committed offset: the next offset to read, and free text of the committer."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


Offsets = Mapping[TopicPartition, OffsetAndMetadata]
OnCommit = Callable[[Mapping[TopicPartition, OffsetAndMetadata], KafkaError | None], None]


class CoordinatorErrand(Errand):
    """An errand to the coordinator: one request."""

    def __init__(self, coordinator: Coordinator, what: str) -> None:
        super().__init__(coordinator.client, what)
        self.coordinator = coordinator
        self._is_asking = False
        self._wake_s = NEVER

    def tick(self, now_s: float) -> None:
        self._wake_s = NEVER
        if self.is_done or self._is_asking:
            return
        if now_s < self.not_before_s:
            self._wake_s = self.not_before_s
            return
        machine = self.coordinator.ready(now_s)
        if machine is None:
            self._wake_s = self.coordinator.wake_s
            if self.coordinator.fault is not None:
                self.finish(self.coordinator.fault)
                self.coordinator.fault = None  # the next errand asks again: the right may have been granted
            elif self.coordinator.reason is not None:
                self.reason = self.coordinator.reason
            return
        try:
            api, version, request = self.request(machine)
        except KafkaError as fault:
            self.finish(fault)
            return
        self._is_asking = True
        machine.send(api, version, request, CoordinatorAnswer(self), now_s)

    @property
    def wake_s(self) -> float:
        return self._wake_s

    def forget_questions(self) -> None:
        self._is_asking = False

    def answered(self, outcome: Outcome, now_s: float) -> None:
        self._is_asking = False
        if isinstance(outcome, Struct):
            self.take(outcome, now_s)
        elif isinstance(outcome, KafkaError):
            self.coordinator.lose()
            self.retry(outcome, now_s)

    def hear(self, code: ErrorCode, about: str, now_s: float) -> None:
        """Handle an error of the answer: retry, or fail."""
        fault = KafkaError(code, f"{about}: {code.explanation}")
        if code in MOVED:
            self.coordinator.lose()
        if code.retriable:
            self.retry(fault, now_s)
        else:
            self.finish(fault)

    def request(self, machine: ConnectionMachine) -> tuple[ApiKey, int, Struct]:
        raise NotImplementedError

    def take(self, answer: Struct, now_s: float) -> None:
        raise NotImplementedError


class CoordinatorAnswer(Pending):
    def __init__(self, errand: CoordinatorErrand) -> None:
        self._errand = errand

    def complete(self, outcome: Outcome, now_s: float) -> None:
        self._errand.answered(outcome, now_s)


class Committed(CoordinatorErrand):
    """The committed offsets of these partitions; None if there is none."""

    def __init__(self, coordinator: Coordinator, places: Iterable[TopicPartition]) -> None:
        super().__init__(coordinator, f"reading the offsets of group {coordinator.group!r}")
        self.places = list(places)
        self.found: dict[TopicPartition, OffsetAndMetadata | None] = {}
        if not self.places:
            self.finish()

    def request(self, machine: ConnectionMachine) -> tuple[ApiKey, int, Struct]:
        version = machine.version(ApiKey.OFFSET_FETCH, oldest=1, newest=LAST_BY_NAME)
        group = self.coordinator.group
        wanted = by_topic(self.places)
        if version >= FIRST_OF_MANY:
            topics = [
                OffsetFetchRequestTopics(name=name, partition_indexes=tuple(numbers))
                for name, numbers in wanted.items()
            ]
            groups = (OffsetFetchRequestGroup(group_id=group, topics=tuple(topics)),)
            return ApiKey.OFFSET_FETCH, version, OffsetFetchRequest(groups=groups, require_stable=True)
        older = [
            OffsetFetchRequestTopic(name=name, partition_indexes=tuple(numbers)) for name, numbers in wanted.items()
        ]
        is_stable = version >= FIRST_STABLE
        request = OffsetFetchRequest(group_id=group, topics=tuple(older), require_stable=is_stable)
        return ApiKey.OFFSET_FETCH, version, request

    def take(self, answer: Struct, now_s: float) -> None:
        assert isinstance(answer, OffsetFetchResponse)
        found: dict[TopicPartition, OffsetAndMetadata | None] = {}
        code = answer.error_code
        rows: list[tuple[str, int, int, int, str | None, int]] = []
        for group in answer.groups:
            if group.group_id == self.coordinator.group:
                code = group.error_code
                for many in group.topics:
                    for each in many.partitions:
                        row = each.partition_index, each.committed_offset, each.committed_leader_epoch
                        rows.append((many.name, *row, each.metadata, each.error_code))
        for one in answer.topics:
            for part in one.partitions:
                line = part.partition_index, part.committed_offset, part.committed_leader_epoch
                rows.append((one.name, *line, part.metadata, part.error_code))
        if code != 0:
            self.hear(error_code(code), f"group {self.coordinator.group!r}", now_s)
            return
        for name, number, offset, epoch, metadata, fault in rows:
            place = TopicPartition(name, number)
            if fault != 0:
                self.hear(error_code(fault), f"{place} of group {self.coordinator.group!r}", now_s)
                return
            found[place] = OffsetAndMetadata(offset, metadata or "", epoch) if offset >= 0 else None
        if any(place not in found for place in self.places):
            self.retry(GarbledError(f"{self.what}: the coordinator left out partitions"), now_s)
            return
        self.found = found
        self.finish()


class Commit(CoordinatorErrand):
    """Commits offsets. Without `retries` a retriable fault ends it too."""

    def __init__(
        self,
        coordinator: Coordinator,
        offsets: Offsets,
        member: Member | None,
        *,
        retries: bool = True,
        on_commit: OnCommit | None = None,
    ) -> None:
        super().__init__(coordinator, f"committing the offsets of group {coordinator.group!r}")
        self.offsets = dict(offsets)
        self.on_commit = on_commit
        self.is_told = False  # the consumer has seen its outcome
        self.retries = retries
        self.is_automatic = False
        self._refusals = 0  # for which a partition was unknown
        self._member = member
        self._sent_as = ("", -1)  # member id and generation, as sent
        if not self.offsets:
            self.finish()

    def request(self, machine: ConnectionMachine) -> tuple[ApiKey, int, Struct]:
        version = machine.version(ApiKey.OFFSET_COMMIT, oldest=2, newest=LAST_BY_NAME)
        member = self._member
        topics: list[OffsetCommitRequestTopic] = []
        for name, numbers in by_topic(self.offsets).items():
            parts: list[OffsetCommitRequestPartition] = []
            for number in numbers:
                offset, metadata, epoch = self.offsets[TopicPartition(name, number)]
                parts.append(
                    OffsetCommitRequestPartition(
                        partition_index=number,
                        committed_offset=offset,
                        committed_leader_epoch=epoch,
                        committed_metadata=metadata,
                    )
                )
            topics.append(OffsetCommitRequestTopic(name=name, partitions=tuple(parts)))
        if member is None:
            request = OffsetCommitRequest(group_id=self.coordinator.group, member_id="", topics=tuple(topics))
            return ApiKey.OFFSET_COMMIT, version, request
        if member.is_joining and not member.has_lost:
            raise RebalanceInProgressError(self.coordinator.group)
        if member.generation < 0:
            raise CommitFailedError(self.coordinator.group)
        self._sent_as = (member.member_id, member.generation)
        request = OffsetCommitRequest(
            group_id=self.coordinator.group,
            generation_id_or_member_epoch=member.generation,
            member_id=member.member_id,
            group_instance_id=member.instance_id if version >= MEMBERS_FROM else None,
            topics=tuple(topics),
        )
        return ApiKey.OFFSET_COMMIT, version, request

    def retry(self, reason: KafkaError, now_s: float) -> None:
        super().retry(reason, now_s)
        if not self.retries:
            self.finish(reason)

    def take(self, answer: Struct, now_s: float) -> None:
        assert isinstance(answer, OffsetCommitResponse)
        results = {
            TopicPartition(topic.name, part.partition_index): part.error_code
            for topic in answer.topics
            for part in topic.partitions
        }
        unknown: list[TopicPartition] = []
        for place in self.offsets:
            code = error_code(results.get(place, ErrorCode.NONE))
            if code == ErrorCode.NONE:
                continue
            if self.is_automatic and code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                unknown.append(place)
                continue
            if self._member is None and code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.STALE_MEMBER_EPOCH):
                text = (
                    f"group {self.coordinator.group!r} has members; stop them first, they would overwrite the offsets"
                )
                self.finish(KafkaError(ErrorCode.NON_EMPTY_GROUP, text))
            elif self._member is not None and code in OUTDATED:
                self.finish(self._outdated(self._member, code, now_s))
            elif self._member is not None and code == ErrorCode.STALE_MEMBER_EPOCH:
                self._member.hurry(now_s)  # the next heartbeat brings the new epoch
                self.retry(KafkaError(code, "the member's epoch was not the newest"), now_s)
            else:
                self.hear(code, f"{place} of group {self.coordinator.group!r}", now_s)
            return
        if unknown:
            self._leave_out(unknown, now_s)
        else:
            self.finish()

    def _leave_out(self, unknown: list[TopicPartition], now_s: float) -> None:
        """End an automatic commit without these partitions. Their topic was deleted, or the coordinator has just
        started and does not know it yet. The next commit has them again; the last one is retried until our metadata
        lacks them, too: several times, as the metadata may be that of a broker that has just started."""
        if self.retries:
            self._refusals += 1
            cluster = self.coordinator.client.cluster
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            fault = KafkaError(code, f"{unknown[0]}: {code.explanation}")
            if self._refusals < REFUSALS or any(cluster.leader(place) is not None for place in unknown):
                cluster.mark_stale()
                self.retry(fault, now_s)
            else:
                self.finish(fault)
            return
        for place in unknown:
            del self.offsets[place]
        self.finish()

    def _outdated(self, member: Member, code: ErrorCode, now_s: float) -> KafkaError:
        """The fault of a commit whose generation is over. If the member has joined a newer one meanwhile, the answer
        says nothing about that; a rebalance takes nothing from a member that still takes part in it."""
        if self._sent_as == (member.member_id, member.generation):
            member.hear(code, now_s)
            if code != ErrorCode.REBALANCE_IN_PROGRESS:
                return CommitFailedError(self.coordinator.group)
        return RebalanceInProgressError(self.coordinator.group)


def as_offset(given: int | OffsetAndMetadata) -> OffsetAndMetadata:
    found = given if isinstance(given, OffsetAndMetadata) else OffsetAndMetadata(given)
    check_long("an offset", found.offset)
    found.metadata.encode()  # UnicodeEncodeError here, and not when the request is written
    return found
