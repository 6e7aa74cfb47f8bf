"""What one request costs a broker in a process of its own: processor time of its loop, memory, bytes of the answer.

Time is the processor time of the broker's main thread, on which its loop runs, so a busy machine does not matter.
"""

from __future__ import annotations

import socket
import struct
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from devtools.stalls import stalls
from ixion.language.protocol.envelope import decode_response
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from ixion.language.protocol.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from tests.broker.served import Served
from tests.hostile.genes import PARTITIONS, TOPICS, WIDE
from tests.hostile.inputs import asked
from tests.hostile.witness import ask, connect, forget_peak, memory_kb, take

LOOK_S = 0.02
QUIET_US = 2_000  # processor time that is no work
QUIET_LOOKS = 10  # a broker that is quiet for so long, turn after turn, waits for something


class Cost(NamedTuple):
    busy_us: int  # processor time of the loop's thread
    memory_kb: int  # that it grew by at most while it was at it
    answer: int  # bytes; 0: it was refused, or is still waited for


class Probe:
    def __init__(self, path: Path) -> None:
        words = ("--set", "group.initial.rebalance.delay.ms=0", "--set", "auto.create.topics.enable=false")
        self._log = path / "log"
        self.served = Served(path, *words, log=self._log)
        self._read = 0  # bytes of the log
        self.ids: list[bytes] = []

    def __enter__(self) -> Self:
        self.served.__enter__()
        self._other = connect(self.served.bootstrap)
        sizes = {f"t{number}": 1 for number in range(TOPICS)} | {WIDE: PARTITIONS}
        topics = tuple(
            CreatableTopic(name=name, num_partitions=size, replication_factor=1, assignments=(), configs=())
            for name, size in sizes.items()
        )
        self._ask(ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest(topics=topics, timeout_ms=60_000))
        for kind in (0, 1):
            self._ask(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="g", key_type=kind))
        names = tuple(MetadataRequestTopic(name=f"t{number}") for number in range(TOPICS))
        answer = self._ask(ApiKey.METADATA, 12, MetadataRequest(topics=names))
        _, body = decode_response(int(ApiKey.METADATA), 12, answer)
        assert isinstance(body, MetadataResponse)
        self.ids = [topic.topic_id for topic in body.topics]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._other.close()
        self.served.__exit__(kind, error, trace)

    def cost(self, request: bytes) -> Cost:
        pid = self.served.process.pid
        with connect(self.served.bootstrap) as client:
            forget_peak(pid)
            before_kb, before_us = memory_kb(pid), self._busy_us()
            answer = self._answer(client, request)
            ask(self._other)
            peak_kb = memory_kb(pid, "VmHWM")
        ask(self._other)
        return Cost(self._busy_us() - before_us, max(0, peak_kb - before_kb), answer)

    def stalls(self) -> list[str]:
        """What held up the loop for too long since the last call."""
        with self._log.open() as log:
            log.seek(self._read)
            found = stalls(log.read())
            self._read = log.tell()
        return found

    def _answer(self, client: socket.socket, request: bytes) -> int:
        """The size of the answer; 0 if there is none, or none before the broker falls silent."""
        try:
            client.sendall(request)
            client.settimeout(LOOK_S)
            head = b""
            quiet = 0
            while not head and quiet < QUIET_LOOKS:
                busy_us = self._busy_us()
                try:
                    head = client.recv(4, socket.MSG_WAITALL)
                    if not head:
                        return 0
                except TimeoutError:
                    ask(self._other)  # so its loop has had a turn at least
                    quiet = quiet + 1 if self._busy_us() - busy_us < QUIET_US else 0
            if len(head) < 4:
                return 0
            client.settimeout(30)
            (left,) = size = struct.unpack(">i", head)
            while left:
                left -= len(client.recv(min(left, 1 << 20)))
            return int(size[0])
        except ConnectionError:
            return 0

    def _busy_us(self) -> int:
        """The main thread's."""
        pid = self.served.process.pid
        return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) // 1000

    def _ask(self, key: ApiKey, version: int, body: Struct) -> bytes:
        self._other.sendall(asked(int(key), version, body))
        answer = take(self._other)
        assert answer is not None
        return answer
