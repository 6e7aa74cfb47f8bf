"""A transaction as a block: committed at its end, aborted on an exception.

with producer.transaction():
    producer.send("invoices", b"value")
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from ixion.clients.faults import TimedOutError
from ixion.language.model.errors import KafkaError

if TYPE_CHECKING:
    from ixion.clients.producer import Producer


# Made from aio/transaction.py by devtools.blocking, from here on …


class TransactionBlock:
    def __init__(self, producer: Producer) -> None:
        self._producer = producer

    def __enter__(self) -> Producer:
        self._producer.begin_transaction()
        return self._producer

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """After a commit that timed out the transaction may be committed; call `commit_transaction` for its outcome."""
        if error is not None:
            self._abort()
            return
        try:
            self._producer.commit_transaction()
        except TimedOutError:
            raise
        except KafkaError:
            self._abort()
            raise

    def _abort(self) -> None:
        try:
            self._producer.abort_transaction()
        except (KafkaError, ValueError):
            pass  # it is fenced, or the block has ended the transaction: the error that led here says more


# … to here.
