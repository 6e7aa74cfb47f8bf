"""`ixion consume --share`: take records from a queue, beside its other members; what is printed is accepted.

A record may be printed twice (if we are killed in between), and none is left out. Ctrl-C releases what was not printed.
"""

from __future__ import annotations

from ixion.cli.access import Access
from ixion.cli.command import UsageError
from ixion.cli.consume.copy import POLL_S, Copy
from ixion.cli.consume.group import Trouble
from ixion.clients import ShareConsumer
from ixion.clients.admin.runner import AdminRunner
from ixion.clients.admin.starts import find_topic


def refuse_places(group: str, given: dict[str, bool]) -> None:
    """UsageError for options that choose records: the group does that."""
    for option, is_given in given.items():
        if is_given:
            hint = ""
            if option == "--offset":
                hint = f"; where it begins: ixion config set group {group} share.auto.offset.reset=earliest"
            raise UsageError(f"--share takes the records that its group hands out; leave out {option}{hint}")


def consume_as_queue(admin: AdminRunner, access: Access, group: str, copy: Copy) -> None:
    for topic in copy.topics:
        admin.run(find_topic, topic)  # an unknown one is reported with the nearest name
    consumer = ShareConsumer(
        access.bootstrap,
        group=group,
        topics=copy.topics,
        client_id="ixion-cli",
        share_acknowledgement_mode="explicit",
        share_acquire_mode="batch_optimized" if copy.left is None else "record_limit",
        allow_auto_create_topics=False,
        **access.security,
    )
    trouble = Trouble()
    with consumer:
        while not copy.is_done:
            copy.take_shared(consumer, POLL_S)
            trouble.look(consumer.trouble)
