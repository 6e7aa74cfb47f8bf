"""Drives a consumer group: notices changed subscriptions and topics, computes targets, moves members towards them.

    update     a heartbeat brings a subscription or owned partitions; the member moves a step towards its target
    remove     takes a member out; the others get new targets with their next heartbeats

Targets are computed when a member's heartbeat finds the group epoch ahead of the assignment epoch, and the present
targets have been in force for group.consumer.assignment.interval.ms. So a group without heartbeats costs nothing, and a
hundred members that come or leave in a row cost one computation. A member that joins in between gets its partitions
with a later heartbeat. With an interval of 1000 ms and a heartbeat every 5000 ms:

       0 ms   a joins      epoch 2, targets of epoch 2     a has everything
     300 ms   b joins      epoch 3, targets of epoch 2     b has nothing yet: the last targets are too young
    5000 ms   a beats      epoch 3, targets of epoch 3     a must revoke half

A computation looks at every member, so n members that join one after the other would cost n² steps. Hence targets are
in force for at least n/10 ms, even if the interval is shorter: ten seconds with 100,000 members, of which the
computation takes one. It runs in turns of the loop (see `targets`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from ixion.broker.coordinators.group.consumer.assignment import Assignment
from ixion.broker.coordinators.group.consumer.change import Change
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.broker.coordinators.group.consumer.limits import GroupLimits
from ixion.broker.coordinators.group.consumer.matches import Matches
from ixion.broker.coordinators.group.consumer.member import ConsumerMember, Subscription
from ixion.broker.coordinators.group.consumer.reconcile import reconcile
from ixion.broker.coordinators.group.consumer.targets import Targets
from ixion.broker.coordinators.group.topics import TopicLookup

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

MEMBERS_PER_MS: Final = 10  # of the time between two computations


class Engine:
    def __init__(self, topics: TopicLookup, limits: GroupLimits, matches: Matches, targets: Targets) -> None:
        self._topics = topics
        self._limits = limits
        self._matches = matches
        self._targets = targets

    def update(
        self,
        change: Change,
        member: ConsumerMember,
        subscription: Subscription,
        owned: Assignment | None,
        rights: Rights | None = None,
    ) -> None:
        group, before = change.group, member.subscription
        member.rights, member.is_loaded = rights, False
        group.has_authorizer = rights is not None
        sees_other = member.sees_other(group.regexes.get(before.regex or "", frozenset()))
        if before != subscription or group.members.get(member.member_id) is not member:
            change.subscribe(member, subscription)
        reads_other = before.topics != subscription.topics or before.regex != subscription.regex
        if reads_other or group.seen_version != self._topics.version:
            self._look_at_topics(change, before, subscription)
        elif sees_other:  # an access rule has changed
            self._bump_if(change, True)
        if self.is_target_due(group, change.now_ms):
            self._targets.compute(change)
        if reads_other or not member.current.is_reconciled_to(group.assignment_epoch):
            self._follow(change, member, owned)

    def remove(self, change: Change, members: Iterable[ConsumerMember]) -> None:
        touched = []
        for member in members:
            touched.append(member.subscription.regex)
            change.remove(member)
        self._resolve_patterns(change, touched)
        change.bump(change.group.hash_topics(self._topics))

    def pattern_matched(self, change: Change, regex: str) -> None:
        """Called when matching a pattern took longer than a turn and is done."""
        self._bump_if(change, self._resolve_patterns(change, (regex,)))

    def is_target_due(self, group: ConsumerGroup, now_ms: int) -> bool:
        """Whether the targets are older than the last change, and have been in force for long enough.

        A clock that was set back does not delay new targets. (In Kafka it does.)
        """
        if group.epoch <= group.assignment_epoch or group.is_computing:
            return False
        interval_ms = self._limits.assignment_interval_ms(group.group_id)
        return not 0 <= now_ms - group.assigned_ms < max(interval_ms, len(group.members) // MEMBERS_PER_MS)

    def _follow(self, change: Change, member: ConsumerMember, owned: Assignment | None) -> None:
        group = change.group
        names = group.topics_of(member, self._topics)

        def reads(topic_id: bytes) -> bool:
            topic = self._topics.by_id(topic_id)
            return topic is not None and topic.name in names

        current = reconcile(
            member.current,
            group.target(member.member_id),
            group.assignment_epoch,
            owned,
            reads=reads,
            is_free=partial(group.is_free_for, member.member_id),
        )
        change.move(member, current)

    def _look_at_topics(self, change: Change, before: Subscription, now: Subscription) -> None:
        """Start a new epoch if the subscription or the topics may need another assignment."""
        group = change.group
        is_resolved = not now.regex or now.regex in group.regexes
        match_others = self._resolve_patterns(change, (before.regex, now.regex))
        reads_other = before.topics != now.topics or (before.regex != now.regex and is_resolved)
        self._bump_if(change, reads_other or match_others)

    def _bump_if(self, change: Change, is_due: bool) -> None:
        seen = change.group.hash_topics(self._topics)
        if is_due or seen != change.group.metadata_hash:
            change.bump(seen)

    def _resolve_patterns(self, change: Change, touched: Iterable[str | None]) -> bool:
        """Find the topics that the patterns `touched` match now, or all patterns if the topics have changed.

        True if a pattern matches other topics than before; a new pattern matched none before. A pattern that takes long
        to match keeps its topics until `pattern_matched` is called or the next heartbeat looks again.
        """
        group, match_others, is_complete = change.group, False, True
        anew = group.seen_version != self._topics.version
        for regex in dict.fromkeys((*group.regexes, *group.demand.regexes) if anew else touched):
            if regex and regex in group.demand.regexes:
                if anew or regex not in group.regexes:
                    found = self._matches.find(regex, group.group_id)
                    if found is None:
                        is_complete = False
                    elif group.regexes.get(regex) != found:
                        match_others |= group.regexes.get(regex, frozenset()) != found
                        change.resolve(regex, found, self._topics.version)
            elif regex and regex in group.regexes:
                change.forget_regex(regex)
        if is_complete:
            group.seen_version = self._topics.version
        return match_others
