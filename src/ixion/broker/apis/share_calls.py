"""What ShareFetch and ShareAcknowledge have in common: the session, the acknowledgements, the redirect to a leader."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ixion.broker.acl.numbers import GROUP, READ, TOPIC
from ixion.broker.apis.call import Call
from ixion.broker.apis.distinct import FIRST, Rule
from ixion.broker.apis.leaders import addresses, leader_of
from ixion.broker.apis.repeats import as_sent
from ixion.broker.apis.services import Services
from ixion.broker.metadata.image import ClusterImage
from ixion.broker.share.acknowledgement import Acknowledgement, check
from ixion.broker.share.manager import ShareManager
from ixion.broker.share.session import FIRST_EPOCH, Place, ShareSession
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.timer.lane import Lane
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

logger = logging.getLogger(__name__)

# The same acknowledgements of a range count once; others of the same range are refused by `check`.
ACKNOWLEDGED: Final = Rule(
    FIRST, ("first_offset", "last_offset", "acknowledge_types", "delay_ms"), {"acknowledge_types": as_sent()}
)
FEATURE: Final = "share.version"
SHARE_GROUPS: Final = 1
RENEW_SINCE: Final = 2
LONGEST_MEMBER_ID: Final = 36
MOST_BATCHES: Final = 50_000  # acknowledgement batches of a request
AT_ONCE: Final = 500  # of them checked in one step, some 500 µs
ELSEWHERE: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class AckBatch(Protocol):
    """AcknowledgementBatch of either request."""

    @property
    def first_offset(self) -> int: ...
    @property
    def last_offset(self) -> int: ...
    @property
    def acknowledge_types(self) -> tuple[int, ...]: ...
    @property
    def delay_ms(self) -> int: ...


class Verdict(NamedTuple):
    """What became of the acknowledgements of one partition."""

    code: ErrorCode = ErrorCode.NONE
    message: str | None = None


Verdicts = dict[Place, Verdict]


class ShareCalls:
    """One of these for each of the two handlers."""

    def __init__(self, services: Services) -> None:
        self.image: Final[ClusterImage] = services.image
        self.shares: Final[ShareManager] = services.share_leaders
        self.replicas: Final = services.replicas

    def check_caller(self, call: Call, group: str | None, member: str | None) -> None:
        """KafkaError for the whole request."""
        if self.image.features.get(FEATURE, 0) < SHARE_GROUPS:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"share groups need {FEATURE} {SHARE_GROUPS}")
        if not group:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "no group")
        if not member or len(member) > LONGEST_MEMBER_ID:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"a member id has 1 to {LONGEST_MEMBER_ID} characters, not {len(member or '')}",
            )
        if call.rights is not None and not call.rights.may(READ, GROUP, group):
            raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED, f"no right to read group {group}")

    def session_of(self, call: Call, group: str, member: str, epoch: int) -> ShareSession:
        """The session that goes on or ends with this request."""
        session = self.shares.sessions.get((group, member), call.principal)
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND, "no such share session")
        if epoch >= FIRST_EPOCH and epoch != session.epoch:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH, f"epoch {epoch}, expected {session.epoch}")
        return session

    def topic_of(
        self, topic_id: bytes, rights: Rights | None, known: dict[bytes, tuple[str, ErrorCode]]
    ) -> tuple[str, ErrorCode]:
        """The name of the topic, and why the client gets nothing of it. `known`: topics that were looked up before."""
        found = known.get(topic_id)
        if found is None:
            shown = self.image.ids.get(topic_id)
            if shown is None:
                found = ("", ErrorCode.UNKNOWN_TOPIC_ID)
            elif rights is not None and not rights.may(READ, TOPIC, shown.name):
                found = (shown.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            else:
                found = (shown.name, ErrorCode.NONE)
            known[topic_id] = found
        return found

    def leader(self, topic_id: bytes, number: int) -> tuple[int, int]:
        """(broker id, leader epoch) for a redirect."""
        shown = self.image.ids.get(topic_id)
        return (-1, -1) if shown is None else leader_of(self.image, self.replicas, shown.name, number)

    def addresses(self, listener: str, brokers: set[int]) -> list[tuple[int, str, int, str | None]]:
        return addresses(self.image, listener, brokers)

    def lock_ms(self, group: str) -> int:
        return self.shares.terms_of(group).lock_ms


class Acknowledging:
    """The acknowledgements of one request. `done` is called once with a verdict for each partition that has some.

    Each partition's are applied at once. Before that they are checked in steps, because a request may have very many.
    """

    def __init__(
        self,
        calls: ShareCalls,
        session: ShareSession,
        rights: Rights | None,
        renews: bool,
        done: Callable[[Verdicts], None],
    ) -> None:
        self._calls = calls
        self._session = session
        self._rights = rights
        self._renews = renews
        self._done = done
        self._verdicts: Verdicts = {}
        self._open = 1  # writes under way, and this loop
        self._topics: dict[bytes, tuple[str, ErrorCode]] = {}

    def run(self, lane: Lane, wanted: Iterable[tuple[Place, tuple[AckBatch, ...]]], then: Callable[[], None]) -> None:
        """`then` is called when all are applied, whether or not they are stored; perhaps before this returns."""

        def ran(_: None, error: Exception | None) -> None:
            if error is not None:
                logger.error("acknowledgements of group %s failed", self._session.group, exc_info=error)
            self._settle()
            then()

        lane.begin(self._steps(wanted), ran)

    def _steps(self, wanted: Iterable[tuple[Place, tuple[AckBatch, ...]]]) -> Steps[None]:
        for place, batches in wanted:
            yield from self._acknowledge(place, batches)
            yield

    def _acknowledge(self, place: Place, batches: tuple[AckBatch, ...]) -> Steps[None]:
        topic, refused = self._calls.topic_of(place[0], self._rights, self._topics)
        self._verdicts[place] = Verdict()
        self._open += 1
        try:
            if refused != ErrorCode.NONE:
                raise KafkaError(refused, "unknown topic" if not topic else "no right to read it")
            self._check_leads(topic, place[1])
            said: list[Acknowledgement] = []
            for begin in range(0, len(batches), AT_ONCE):
                if begin:
                    yield
                for each in batches[begin : begin + AT_ONCE]:
                    delay_ms = max(each.delay_ms, 0)
                    said.append(Acknowledgement(each.first_offset, each.last_offset, each.acknowledge_types, delay_ms))
                check(said[max(begin - 1, 0) :], self._renews)  # with the one before, which must lie in front
            self._check_leads(topic, place[1])
            leader = self._calls.shares.known(self._session.group, *place)
            if leader is None:
                raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "nothing has been acquired here")
            leader.acknowledge(self._session.member, said, lambda code: self._stored(place, code))
        except KafkaError as error:
            self._verdicts[place] = Verdict(error.code, error.message)
            self._settle()

    def _check_leads(self, topic: str, number: int) -> None:
        partition = self._calls.replicas.partitions.get((topic, number))
        if partition is None or not partition.leads:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "not led here")

    def _stored(self, place: Place, code: ErrorCode) -> None:
        if code != ErrorCode.NONE:
            self._verdicts[place] = Verdict(code, "the acknowledgement could not be stored")
        self._settle()

    def _settle(self) -> None:
        self._open -= 1
        if not self._open:
            self._done(self._verdicts)
