"""What a share group counts about its members."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from ixion.broker.coordinators.group.share.group import ShareGroup, ShareMember


def test_names_and_bytes_are_those_of_the_members_after_any_changes() -> None:
    chance = random.Random(7)
    group = ShareGroup("g")
    for _ in range(500):
        member_id = f"m{chance.randrange(4)}"
        known = group.members.get(member_id)
        match chance.randrange(4):
            case 0:
                group.remove(member_id)
            case 1 if known is not None:  # a heartbeat: the same topics, another epoch
                group.put(replace(known, epoch=known.epoch + 1, client_id="c" * chance.randrange(9)))
            case _:
                topics = frozenset(chance.sample("abcdef", chance.randrange(5)))
                group.put(ShareMember(member_id=member_id, topics=topics))
        members = group.members.values()
        assert group.names == Counter(name for member in members for name in member.topics)
        assert all(group.names.values())
        assert group.members_bytes == sum(member.held_bytes for member in members)
