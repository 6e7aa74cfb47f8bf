"""A long conversation about transactions, of which every answer is written down.

Add a step here when an answer must be the same as Apache Kafka's.

Producer ids are shown as differences to the first one, offsets not at all.
"""

from __future__ import annotations

from ixion.language.model.errors import ErrorCode
from tests.apis.raw import Raw
from tests.apis.test_k25_add_offsets_to_txn import add_offsets
from tests.apis.test_k28_txn_offset_commit import commit as commit_offset
from tests.apis.test_k65_describe_transactions import describe
from tests.apis.txn_kit import add, batch, end, init_answer, produce

WAIT = ("CONCURRENT_TRANSACTIONS", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE")


class Talk:
    def __init__(self, raw: Raw) -> None:
        self.raw = raw
        self.said: list[str] = []
        self.first = -1

    def note(self, what: str, outcome: object) -> None:
        self.said.append(f"{what}: {outcome}")

    def init(
        self, name: str, producer_id: int = -1, epoch: int = -1, version: int = 5, timeout_ms: int = 60_000
    ) -> tuple[int, int]:
        """Asked again while the broker is not ready, as clients do."""
        while True:
            answer = init_answer(self.raw, name, producer_id, epoch, version=version, timeout_ms=timeout_ms)
            code = ErrorCode(answer.error_code).name
            if code not in WAIT:
                break
        if code == "NONE" and self.first < 0:
            self.first = answer.producer_id
        shown = answer.producer_id - self.first if code == "NONE" else answer.producer_id
        self.note(f"init {name} {epoch} v{version}", (code, shown, answer.producer_epoch))
        return answer.producer_id, answer.producer_epoch

    def add(self, name: str, producer: tuple[int, int], *numbers: int, version: int = 3) -> None:
        while True:
            codes = add(self.raw, name, *producer, *numbers, version=version)
            if codes[0] not in WAIT:
                break
        self.note(f"add {name} {producer[1]} v{version}", sorted(codes))

    def end(self, name: str, producer: tuple[int, int], commit: bool, version: int) -> tuple[int, int]:
        while True:
            code, producer_id, epoch = end(self.raw, name, *producer, commit, version)
            if code not in WAIT:
                break
        same = producer_id == producer[0]
        self.note(f"end {name} {producer[1]} {commit} v{version}", (code, same, epoch))
        return (producer_id, epoch) if code == "NONE" and version >= 5 else producer

    def produce(
        self, name: str | None, producer: tuple[int, int], sequence: int = 0, *, number: int = 0, version: int
    ) -> None:
        while True:
            code = produce(self.raw, name, batch(*producer, sequence), number=number, version=version)
            if code not in (*WAIT, "NOT_ENOUGH_REPLICAS"):
                break
        self.note(f"produce {name} {producer[1]} v{version}", code)

    def describe(self, name: str) -> None:
        """When the broker has come to rest: a completion may take it a moment."""
        (state,) = describe(self.raw, name)
        while state.transaction_state.startswith("Prepare"):
            (state,) = describe(self.raw, name)
        shown = ErrorCode(state.error_code).name, state.transaction_state, state.producer_epoch
        self.note(f"describe {name}", (*shown, [(topic.topic, sorted(topic.partitions)) for topic in state.topics]))

    def commit_offset(self, producer: tuple[int, int], version: int, *, number: int = 0) -> None:
        while True:
            code = commit_offset(self.raw, "offsets", *producer, 7, version, number=number)
            if code not in WAIT:
                break
        self.note(f"offsets {producer[1]} {number} v{version}", code)


def converse(raw: Raw) -> list[str]:
    talk = Talk(raw)
    for part in (old_protocol, overtaking, new_protocol, recovery, offsets, strangers):
        part(talk)
    return talk.said


def old_protocol(talk: Talk) -> None:
    producer = talk.init("old", version=4)
    talk.end("old", producer, True, 3)
    talk.end("old", producer, False, 3)
    talk.produce("old", producer, version=10)
    talk.produce("old", producer, version=11)
    talk.add("old", producer, 0, 1)
    talk.add("old", producer, 0)
    talk.add("old", producer, 0, 99)
    talk.produce("old", producer, version=11)
    talk.produce("old", producer, 1, version=11)
    talk.produce("old", producer, number=2, version=11)
    talk.describe("old")
    talk.end("old", producer, True, 4)
    talk.end("old", producer, True, 4)
    talk.end("old", producer, False, 4)
    talk.produce("old", producer, 2, version=10)
    talk.add("old", producer, 1)
    talk.end("old", producer, False, 1)
    talk.end("old", producer, True, 1)
    later = talk.init("old", version=4)
    talk.add("old", producer, 1, version=1)
    talk.add("old", producer, 1, version=2)
    talk.end("old", producer, True, 1)
    talk.end("old", producer, True, 2)
    talk.produce("old", producer, 3, version=11)
    talk.add("old", later, 0)
    newest = talk.init("old", version=4)
    talk.end("old", later, True, 3)
    talk.describe("old")
    talk.add("old", newest, 0)


def overtaking(talk: Talk) -> None:
    """Writes of which the first was refused and comes again."""
    producer = talk.init("late", version=4)
    talk.produce("late", producer, version=11)
    talk.produce("late", producer, 4, number=1, version=10)
    talk.produce("late", producer, 3, number=1, version=11)
    talk.produce("late", producer, 3, number=2, version=11)
    talk.add("late", producer, 0, 1)
    talk.produce("late", producer, 1, version=11)
    talk.produce("late", producer, version=11)
    talk.produce("late", producer, 1, version=11)
    talk.produce("late", producer, 4, number=1, version=11)
    talk.produce("late", producer, 3, number=1, version=11)
    talk.produce("late", producer, 4, number=1, version=11)
    talk.end("late", producer, True, 4)
    later = talk.init("late", version=4)
    talk.add("late", later, 2)
    talk.produce("late", later, 5, number=2, version=11)
    talk.end("late", later, False, 4)


def new_protocol(talk: Talk) -> None:
    first = talk.init("new")
    talk.end("new", first, True, 5)
    second = talk.end("new", first, False, 5)
    talk.describe("new")
    talk.end("new", first, False, 5)
    talk.end("new", first, True, 5)
    talk.produce("new", second, version=12)
    talk.produce("new", second, 1, version=12)
    talk.produce("new", first, version=12)
    talk.describe("new")
    talk.end("new", first, True, 5)
    third = talk.end("new", second, True, 5)
    talk.end("new", second, True, 5)
    talk.end("new", second, False, 5)
    talk.end("new", first, True, 5)
    talk.produce("new", second, 2, version=12)
    talk.produce("new", third, version=12)
    talk.end("new", second, True, 5)
    talk.end("new", second, False, 5)
    fourth = talk.end("new", third, False, 5)
    talk.end("new", fourth, True, 5)
    fifth = talk.end("new", fourth, False, 5)
    talk.produce("new", fifth, version=12)
    talk.init("new")
    talk.end("new", fifth, True, 5)


def recovery(talk: Talk) -> None:
    first = talk.init("kip360")
    second = talk.init("kip360", *first)
    talk.init("kip360", *first)
    talk.init("kip360", *second)
    talk.init("kip360", *first)
    talk.init("kip360", *first, version=3)
    talk.init("kip360", first[0] + 500, 1)
    talk.init("kip360")
    talk.init("kip360", *second)
    for timeout_ms in (0, -1, 900_001):
        talk.init("timeouts", timeout_ms=timeout_ms)
    talk.init("")
    talk.init("half", 5, -1)
    talk.init("half", -1, 5)
    talk.init("forgotten", 12_345, 6)


def offsets(talk: Talk) -> None:
    producer = talk.init("offsets")
    talk.commit_offset(producer, 3)
    talk.commit_offset(producer, 4)
    talk.note("announce", add_offsets(talk.raw, "offsets", *producer, 3))
    talk.commit_offset(producer, 3)
    talk.commit_offset(producer, 3, number=88)
    talk.end("offsets", producer, False, 4)
    talk.commit_offset((producer[0], producer[1] + 1), 5)
    talk.commit_offset(producer, 4)
    talk.commit_offset(producer, 5)
    talk.describe("offsets")
    talk.end("offsets", producer, True, 5)


def strangers(talk: Talk) -> None:
    mine = talk.init("mine")
    yours = talk.init("yours")
    talk.add("mine", yours, 0)
    talk.add("nobody", mine, 0)
    talk.add("", mine, 0)
    talk.end("mine", yours, True, 5)
    talk.end("nobody", mine, True, 4)
    talk.end("", mine, True, 5)
    talk.end("mine", (mine[0], mine[1] + 9), True, 5)
    talk.end("mine", (mine[0], -1), False, 5)
    talk.produce("mine", yours, version=12)
    talk.produce("nobody", mine, version=12)
    talk.produce("nobody", mine, version=11)
    talk.produce(None, mine, version=12)
    talk.describe("nobody")
    talk.describe("")
