"""The result of one fetch from one partition: whole batches, of which the caller gets some records.

A broker answers with whole batches, so the first may begin before the requested offset. Control batches are skipped.
With read_committed, the answer lists the aborted transactions, each with its first offset, and their records are
skipped:

    offset  0: data of producer 7    1: data of producer 8    2: abort of 7    3: data of producer 7
    aborted [(7, from 0)]            returned: 1 and 3

A producer counts as aborted from the first offset in the list to its next abort marker.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k01_fetch import AbortedTransaction
from ixion.language.records.batch import BatchView
from ixion.language.records.columns import Columns, read_columns
from ixion.language.records.control import ControlType, control_type
from ixion.language.records.layout import Buffer
from ixion.language.records.record import Record
from ixion.language.records.walker import FAR


class Fetched:
    def __init__(
        self,
        partition: TopicPartition,
        offset: int,
        batches: list[BatchView],
        end_offset: int,
        aborted: Sequence[AbortedTransaction] | None,
    ) -> None:
        """`aborted` is None for read_uncommitted; `end_offset` is how far the partition can be read now."""
        self.partition = partition
        self.offset = offset
        self.end_offset = end_offset
        self.next_offset = max(offset, batches[-1].next_offset) if batches else offset
        self.size_in_bytes = sum([batch.size_in_bytes for batch in batches])
        self.last_epoch = batches[-1].leader_epoch if batches else -1
        self.only_epoch = self.last_epoch if batches and batches[0].leader_epoch == self.last_epoch else -1
        self._batches = batches
        self._aborted = aborted

    def batches(self) -> Iterator[BatchView]:
        """The batches with records for the caller; the first may begin before `offset`."""
        doomed: set[int] = set()
        aborted = deque(sorted(self._aborted or (), key=lambda found: found.first_offset))
        for batch in self._batches:
            while aborted and aborted[0].first_offset <= batch.last_offset:
                doomed.add(aborted.popleft().producer_id)
            if batch.is_control:
                if control_type(batch) == ControlType.ABORT:
                    doomed.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in doomed):
                yield batch

    def records(self) -> Iterator[Record]:
        """The records from `offset` on. KafkaError (CORRUPT_MESSAGE) if a batch was damaged on its way."""
        for batch in self.batches():
            if not batch.crc_is_valid():
                text = f"{self.partition}: the batch at offset {batch.base_offset} has a wrong checksum"
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, text)
            if batch.base_offset >= self.offset:
                yield from batch
            else:
                for record in batch:
                    if record.offset >= self.offset:
                        yield record

    def columns(self, end_offset: int = FAR) -> Iterator[Columns]:
        """The same records as columns, those before `end_offset`. KafkaError as above, and the rows since the last
        columns are lost."""
        try:
            yield from read_columns(self._in_bytes(), self.offset, end_offset)
        except KafkaError as error:
            raise KafkaError(error.code, f"{self.partition}: {error.message}") from None

    def _in_bytes(self) -> Iterator[BatchView]:
        """The same batches, the uncompressed ones all in one `bytes` object: columns refer to it and copy no record."""
        buffer: Buffer = b""
        data = b""
        for batch in self.batches():
            if batch.codec_id == 0 and not isinstance(batch.buffer, bytes):
                if batch.buffer is not buffer:
                    buffer = batch.buffer
                    data = bytes(buffer)
                batch = BatchView(data, batch.position)
            yield batch
