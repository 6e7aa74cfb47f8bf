"""Waits until moves of partitions are over, shows how far they are, and says what holds them up.

A move ends when its new replicas are in sync, so one to a broker that is stopped or paused lasts until that broker is
back. The command waits for as long as the user does, and says once for each reason why nothing happens. A controller
that does not answer is asked again: it may be paused, or another is being elected.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ixion.cli.output import counted, note
from ixion.cli.progress import ProgressLine
from ixion.language.model.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ixion.clients.admin.replicas import LogDirDescription, Reassignment
    from ixion.clients.admin.runner import AdminRunner
    from ixion.clients.metadata import TopicPartition

LOOK_S: Final = 0.5
STUCK_S: Final = 10.0  # without progress, before we say why
SIZES_S: Final = 2.0  # for all brokers to say what their disks hold; a paused one never does
UNANSWERED: Final = 5  # requests in a row, each for as long as --timeout; then the command gives up
SHOWN: Final = 5  # topics that are named in a command


class Waiting:
    def __init__(self, admin: AdminRunner, places: set[TopicPartition]) -> None:
        self._admin = admin
        self._places = places
        self._moves: Mapping[TopicPartition, Reassignment] = {}
        self._total = 0
        self._told: set[str] = set()
        self._line = ProgressLine(self._progress)

    def wait(self) -> None:
        """Returns when none of the partitions is being reassigned any more."""
        state: object = None
        since_s = time.monotonic() - STUCK_S  # the first look is what the next one is compared with
        try:
            while self._look():
                self._line.step()
                if time.monotonic() - since_s >= STUCK_S:
                    now = frozenset(self._moves.items()), to_copy(self._admin, self._moves)
                    if now == state:
                        self._tell(self._reason())
                    state, since_s = now, time.monotonic()
                time.sleep(LOOK_S)
        finally:
            self._line.clear()

    def _look(self) -> bool:
        """Whether there are moves."""
        from ixion.clients.admin.replicas import list_partition_reassignments

        for attempt in range(1, UNANSWERED + 1):
            try:
                found = self._admin.run(list_partition_reassignments)
                break
            except KafkaError as error:
                if not error.code.retriable or attempt == UNANSWERED:
                    raise
                self._tell(f"the controller does not answer, so it is asked again ({error.message})")
        self._moves = {place: move for place, move in found.items() if place in self._places}
        self._total = max(self._total, len(self._moves))
        return bool(self._moves)

    def _progress(self) -> str:
        size = to_copy(self._admin, self._moves)
        moved = self._total - len(self._moves)
        return f"{moved} of {counted(self._total, 'partition')} moved, {size / 1e6:.1f} MB to copy"

    def _reason(self) -> str:
        """Why nothing happens, and what can be done about it."""
        from ixion.clients.admin.routes import metadata

        try:
            found = self._admin.run(metadata, None)
        except KafkaError as error:
            return f"the cluster does not answer ({error.message})"
        awaited: set[int] = set()
        for place, move in self._moves.items():
            topic = found.topics.get(place.topic)
            parts = () if topic is None else topic.partitions
            in_sync = {node for part in parts if part.number == place.partition for node in part.in_sync}
            awaited |= set(move.adding) - in_sync
        gone, behind = sorted(awaited - found.nodes.keys()), sorted(awaited & found.nodes.keys())
        reasons = []
        if gone:
            reasons.append(f"{named(gone)} not in the cluster")
        if behind:
            reasons.append(f"{named(behind)} in the cluster, but copied nothing")
        why = " and ".join(reasons) or "the controller has not ended them yet"
        rest = counted(len(self._moves), "move")
        cancel = cancelling({place.topic for place in self._moves})
        return (
            f"no progress with {rest} for {STUCK_S:g} s: {why}. Ctrl-C leaves the rest to the cluster, where"
            f" `ixion cluster describe` shows it; `{cancel}` takes it back"
        )

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._line.clear()
            note(text)


def to_copy(admin: AdminRunner, moves: Mapping[TopicPartition, Reassignment]) -> int:
    """The bytes that new replicas lack of the largest replica of their partition, as far as brokers answer."""
    sizes: dict[TopicPartition, dict[int, int]] = {}
    for directory in directories_of(admin, moves):
        for replica in directory.replicas:
            if replica.partition in moves and not replica.is_future:
                sizes.setdefault(replica.partition, {})[directory.broker] = replica.size
    return sum(
        max(0, max(sizes.get(place, {}).values(), default=0) - sizes.get(place, {}).get(broker, 0))
        for place, move in moves.items()
        for broker in move.adding
    )


def directories_of(admin: AdminRunner, moves: Mapping[TopicPartition, Reassignment]) -> list[LogDirDescription]:
    from ixion.clients.admin.replicas import describe_log_dirs

    try:
        return admin.run_within(SIZES_S, describe_log_dirs)
    except KafkaError:
        pass  # one of them does not answer, so each is asked alone
    found = []
    for broker in sorted({each for move in moves.values() for each in move.replicas}):
        with suppress(KafkaError):
            found += admin.run_within(SIZES_S, describe_log_dirs, [broker])
    return found


def cancelling(topics: Collection[str]) -> str:
    """The command that takes their moves back."""
    words = " ".join(sorted(topics)) if len(topics) <= SHOWN else "TOPIC..."
    return f"ixion cluster reassign {words} --cancel"


def named(brokers: list[int]) -> str:
    listed = ", ".join(map(str, brokers))
    return f"broker {listed} is" if len(brokers) == 1 else f"brokers {listed} are"
