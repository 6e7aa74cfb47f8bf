"""A consumer group: members, their targets, and the owners of partitions. No I/O, no clock.

Three numbers describe its progress. The *group epoch* grows with every change that may need another assignment: a
member joins, leaves or subscribes to something else, a topic grows. The *assignment epoch* is the group epoch for which
the targets were computed. A member's *epoch* is the assignment epoch that it has reached.
"""

from __future__ import annotations

from sys import getsizeof

from ixion.broker.coordinators.group.consumer.assignment import NOTHING, Assignment
from ixion.broker.coordinators.group.consumer.demand import BYTES_PER_GROUP, BYTES_PER_MATCH, Demand
from ixion.broker.coordinators.group.consumer.member import ConsumerMember, Subscription
from ixion.broker.coordinators.group.consumer.reconcile import Current
from ixion.broker.coordinators.group.consumer.states import ConsumerGroupState
from ixion.broker.coordinators.group.topics import Topic, TopicLookup, hash_of


class ConsumerGroup:
    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 1  # a joining member has epoch 0, so the first epoch that it gets must be higher
        self.assignment_epoch = 1  # a group without members needs no computation
        self.assigned_ms = 0  # when the targets were computed; 0: never, or not known
        self.metadata_hash = 0  # of the subscribed topics at this epoch
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}  # instance id -> member id
        self.targets: dict[str, Assignment] = {}
        self.regexes: dict[str, frozenset[str]] = {}  # the topics that match; changed by `resolve` and `forget_regex`
        self._matched = 0  # topics in `regexes`
        self._regex_changes = 0  # of `regexes`
        self._hashed: tuple[tuple[int, int, int], int] | None = None
        self.seen_version = -1  # of the cluster's topics, at the last look
        self.has_authorizer = True  # as the last heartbeat says; before the first, the careful answer
        self.demand = Demand()
        self.is_computing = False  # a computation of targets runs, in turns of the loop
        self.came_or_gone: set[str] = set()  # ids of members that came or left since it began
        self.dead = False
        self._owners: dict[tuple[bytes, int], str] = {}

    @property
    def state(self) -> ConsumerGroupState:
        if self.dead:
            return ConsumerGroupState.DEAD
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.current.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @property
    def held_bytes(self) -> int:
        """Roughly the memory that the group takes."""
        matched = self._matched * BYTES_PER_MATCH
        return BYTES_PER_GROUP + getsizeof(self.group_id) + self.demand.held_bytes + matched

    def put(self, member: ConsumerMember, subscription: Subscription) -> None:
        """Add the member, or change its subscription. Only this method may: it keeps `demand` right."""
        known = self.members.get(member.member_id)
        if known is not None:
            self.demand.remove(member.member_id, known.subscription)
        elif self.is_computing:
            self.came_or_gone.add(member.member_id)
        self.demand.add(member.member_id, subscription)
        member.subscription = subscription
        self.members[member.member_id] = member
        instance_id = subscription.instance_id
        if instance_id is not None:
            self.static_members[instance_id] = member.member_id
        self._claim(member)

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        self.targets.pop(member_id, None)
        if member is not None:
            if self.is_computing:
                self.came_or_gone.add(member_id)
            self._release(member)
            self.demand.remove(member_id, member.subscription)
            instance_id = member.subscription.instance_id
            if instance_id is not None and self.static_members.get(instance_id) == member_id:
                del self.static_members[instance_id]

    def move(self, member: ConsumerMember, current: Current) -> None:
        """Set the state of the member, and the owners of its partitions with it."""
        self._release(member)
        member.current = current
        self._claim(member)

    def resolve(self, regex: str, topics: frozenset[str]) -> None:
        """Set the topics that the pattern matches."""
        self.forget_regex(regex)
        self.regexes[regex] = topics
        self._regex_changes += 1
        self._matched += len(topics)

    def forget_regex(self, regex: str) -> None:
        self._matched -= len(self.regexes.pop(regex, ()))
        self._regex_changes += 1

    def is_free_for(self, member_id: str, topic_id: bytes, partition: int) -> bool:
        """Whether no other member has the partition."""
        return self._owners.get((topic_id, partition), member_id) == member_id

    def target(self, member_id: str) -> Assignment:
        return self.targets.get(member_id, NOTHING)

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def topics_of(self, member: ConsumerMember, topics: TopicLookup) -> frozenset[str]:
        """The topics of its subscription, by name and by pattern, that the member may describe.

        The pattern of a member that was loaded from the log and has sent no heartbeat since matches nothing new.
        """
        regex = member.subscription.regex
        names = member.subscription.topics
        if not regex:
            return names
        matched = self.regexes.get(regex, frozenset())
        if member.is_loaded and self.has_authorizer:
            return names | member.shown_before_heartbeat(matched, self._had(member, topics))
        return names | member.shown(matched)

    def _had(self, member: ConsumerMember, topics: TopicLookup) -> frozenset[str]:
        """The topics of its target and of its partitions."""
        ids = self.target(member.member_id).keys() | {topic_id for topic_id, _ in member.current.held()}
        return frozenset(topic.name for topic_id in ids if (topic := topics.by_id(topic_id)) is not None)

    def subscribed(self, topics: TopicLookup) -> list[Topic]:
        """The existing topics that its members subscribe to. Members may name many that do not exist."""
        names: set[str] = set()
        for regex in self.demand.regexes:
            names.update(self.regexes.get(regex, ()))
        named, known = self.demand.topics, topics.names()
        names.update(named if len(named) <= len(known) else filter(named.__contains__, known))
        return [topic for name in sorted(names) if (topic := topics.by_name(name)) is not None]

    def hash_topics(self, topics: TopicLookup) -> int:
        """The hash of `subscribed`, remembered until the subscriptions or the topics change."""
        state = (topics.version, self.demand.changes, self._regex_changes)
        if self._hashed is None or self._hashed[0] != state:
            self._hashed = (state, hash_of(self.subscribed(topics)))
        return self._hashed[1]

    def reads(self, topic: str) -> bool:
        return topic in self.demand.topics or any(topic in self.regexes.get(regex, ()) for regex in self.demand.regexes)

    def _claim(self, member: ConsumerMember) -> None:
        for partition in member.current.held():
            self._owners[partition] = member.member_id

    def _release(self, member: ConsumerMember) -> None:
        for partition in member.current.held():
            if self._owners.get(partition) == member.member_id:
                del self._owners[partition]
