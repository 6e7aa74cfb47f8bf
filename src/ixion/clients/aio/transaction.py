"""A transaction as a block: committed at its end, aborted on an exception.

async with producer.transaction():
    await producer.send("invoices", b"value")
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from ixion.clients.faults import TimedOutError
from ixion.language.model.errors import KafkaError

if TYPE_CHECKING:
    from ixion.clients.aio.producer import Producer


# The blocking face is made from here on (python -m devtools.blocking) …


class AioTransactionBlock:
    def __init__(self, producer: Producer) -> None:
        self._producer = producer

    async def __aenter__(self) -> Producer:
        await self._producer.begin_transaction()
        return self._producer

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """After a commit that timed out the transaction may be committed; call `commit_transaction` for its outcome."""
        if error is not None:
            await self._abort()
            return
        try:
            await self._producer.commit_transaction()
        except TimedOutError:
            raise
        except KafkaError:
            await self._abort()
            raise

    async def _abort(self) -> None:
        try:
            await self._producer.abort_transaction()
        except (KafkaError, ValueError):
            pass  # it is fenced, or the block has ended the transaction: the error that led here says more


# … to here.
