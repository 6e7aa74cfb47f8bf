"""What makes a consumer group move: subscriptions change, topics change, targets are computed, members follow.

    update     a member says something: its subscription, and what it has; it is told where it stands
    remove     a member is gone; the others hear of their new targets with their next heartbeats

Targets are computed when a member's heartbeat finds the group epoch ahead of the assignment epoch. So a group nobody
hears of costs nothing, and a hundred members that leave in a row cost one computation.

A computation looks at every member, so a group of n that meets one after the other would cost n² looks. Hence it is
done at most every n/10 ms: in a group of less than ten at once, in one of 10,000 once a second, which takes a tenth of
that second. Whoever joins in between is a member with nothing for now, and finds its partitions with its next
heartbeat. (Kafka computes at most once a second, whatever the size: group.consumer.assignment.interval.ms.)
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

from ixion.coordinators.group.consumer.assignment import Assignment
from ixion.coordinators.group.consumer.assignors import ASSIGNORS
from ixion.coordinators.group.consumer.assignors.spec import Reader, Spec
from ixion.coordinators.group.consumer.change import Change
from ixion.coordinators.group.consumer.group import ConsumerGroup
from ixion.coordinators.group.consumer.limits import Limits
from ixion.coordinators.group.consumer.member import ConsumerMember, Subscription
from ixion.coordinators.group.consumer.pattern import Pattern
from ixion.coordinators.group.consumer.reconcile import reconcile
from ixion.coordinators.group.topics import TopicLookup

MEMBERS_PER_MS: Final = 10  # of the time between two computations


class Engine:
    def __init__(self, topics: TopicLookup, limits: Limits) -> None:
        self._topics = topics
        self._limits = limits
        self._patterns: dict[str, Pattern] = {}

    def check_pattern(self, regex: str) -> None:
        """PatternError if it cannot be read; to be asked before anything is changed."""
        self._pattern(regex)

    def update(
        self, change: Change, member: ConsumerMember, subscription: Subscription, owned: Assignment | None
    ) -> None:
        group = change.group
        before = member.subscription
        is_known = group.members.get(member.member_id) is member
        changed = not is_known or before.topics != subscription.topics or before.regex != subscription.regex
        if not is_known or before != subscription:
            change.subscribe(member, subscription)
        self._look_at_topics(change, changed, (before.regex, subscription.regex))
        if group.epoch > group.assignment_epoch and (member.is_classic or _is_due(group, change.now_ms)):
            change.set_targets(self._targets(group))
            group.assigned_ms = change.now_ms
        target = group.target(member.member_id)
        change.move(member, reconcile(member.current, target, group.assignment_epoch, owned, group.is_free))

    def remove(self, change: Change, members: Iterable[ConsumerMember]) -> None:
        touched = []
        for member in members:
            touched.append(member.subscription.regex)
            change.remove(member)
        self._resolve_patterns(change, touched)
        change.bump(self._hash(change.group))

    def _look_at_topics(self, change: Change, changed: bool, touched: Iterable[str | None]) -> None:
        """A new epoch, if the subscriptions changed (the patterns `touched` among them) or the topics did."""
        group = change.group
        if not changed and group.seen_version == self._topics.version:
            return
        self._resolve_patterns(change, touched)
        group.seen_version = self._topics.version
        now = self._hash(group)
        if changed or now != group.metadata_hash:
            change.bump(now)

    def _resolve_patterns(self, change: Change, touched: Iterable[str | None]) -> None:
        """Of the patterns `touched`, or of all if the topics have changed, which topics do they match now?"""
        group = change.group
        anew = group.seen_version != self._topics.version
        for regex in dict.fromkeys((*group.regexes, *group.demand.regexes) if anew else touched):
            if regex and regex in group.demand.regexes:
                if anew or regex not in group.regexes:
                    matches = self._pattern(regex).matches
                    found = frozenset(name for name in self._topics.names() if matches(name))
                    if group.regexes.get(regex) != found:
                        change.resolve(regex, found, self._topics.version)
            elif regex and regex in group.regexes:
                change.forget_regex(regex)

    def _pattern(self, regex: str) -> Pattern:
        known = self._patterns.get(regex)
        if known is None:
            if len(self._patterns) > 100:
                self._patterns.clear()
            known = self._patterns[regex] = Pattern(regex)
        return known

    def _hash(self, group: ConsumerGroup) -> int:
        """Differs when a subscribed topic was created, deleted, made anew or has grown."""
        digest = blake2b(digest_size=8)
        for name in sorted(group.subscribed()):
            topic = self._topics.by_name(name)
            if topic is not None:
                digest.update(topic.topic_id + topic.partitions.to_bytes(4))
        return int.from_bytes(digest.digest(), signed=True)

    def _targets(self, group: ConsumerGroup) -> dict[str, Assignment]:
        partitions: dict[bytes, int] = {}
        ids: dict[str, bytes] = {}
        for name in sorted(group.subscribed()):
            topic = self._topics.by_name(name)
            if topic is not None:
                partitions[topic.topic_id] = topic.partitions
                ids[name] = topic.topic_id
        readers = {
            member.member_id: Reader(
                topics=frozenset(ids[name] for name in group.topics_of(member) if name in ids),
                before=group.target(member.member_id),
                instance_id=member.subscription.instance_id,
            )
            for member in group.members.values()
        }
        assign = ASSIGNORS[group.demand.assignor(self._limits.assignors)]
        return assign(Spec(readers=readers, partitions=partitions))


def _is_due(group: ConsumerGroup, now_ms: int) -> bool:
    return group.assigned_ms is None or now_ms - group.assigned_ms >= len(group.members) // MEMBERS_PER_MS
