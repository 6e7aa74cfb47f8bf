"""Which replica leads a partition: the rules of the controller's elections, without I/O.

Every rule takes the first eligible replica in the order of the assignment. Eligible is:

    offline              alive and in the ISR; if there is none and unclean elections are allowed, any that is alive
    reassignment         of the target replicas: alive and in the ISR
    last one came back   the alive replica with the longest log, if every member of the ISR restarted
    restarted unseen     alive, in the ISR, and its broker has not restarted since the ISR was written, or kept its log
    preferred            only the first replica: alive and in the ISR
    controlled shutdown  alive, in the ISR, and its broker is not shutting down

A rule returns the new leadership in the next leader epoch, or None if no replica is eligible.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from ixion.broker.controller.cluster.leadership import FIRST_EPOCH, NO_LEADER, Leadership
from ixion.broker.metadata.topic_node import Replicas

Rule = Callable[[Replicas, Leadership], Leadership | None]


def target_of(replicas: Replicas) -> tuple[int, ...]:
    """The replicas after the reassignment."""
    return tuple([broker for broker in replicas.all if broker not in replicas.removing])


def first_leadership(replicas: Replicas, online: Collection[int]) -> Leadership | None:
    """The first leadership of a new partition: every live replica is in sync, because all are empty."""
    isr = tuple([broker for broker in replicas.all if broker in online])
    return Leadership(leader=isr[0], leader_epoch=FIRST_EPOCH, isr=isr) if isr else None


def after_leader_loss(
    replicas: Replicas, known: Leadership, online: Collection[int], unclean: bool = False
) -> Leadership | None:
    for broker in replicas.all:
        if broker in online and broker in known.isr:
            return known.next(broker, tuple([member for member in known.isr if member in online]))
    if unclean:
        for broker in replicas.all:
            if broker in online:
                return uncleanly(known, broker)
    return None


def with_most(
    replicas: Replicas, known: Leadership, online: Collection[int], ends: Mapping[int, tuple[int, int]]
) -> Leadership | None:
    """The leadership if every live in-sync replica has restarted, and may have lost unsynced records (KIP-966): the
    replica with the longest log leads, and in-sync replicas with less leave the ISR. None if nothing changes, or if the
    leader does not report where its log ends (Apache Kafka's brokers do not).

    `ends` has the last leader epoch and the end of each log. A log that is longer than that of a former ISR member has
    every record that was committed up to its end, because leaders of its last epoch were elected from the ISR.
    """
    members = [broker for broker in replicas.all if broker in known.isr and broker in online]
    first = known.leader if known.leader in members else next(iter(members), NO_LEADER)
    if first not in ends:
        return None
    best = first
    for broker in replicas.all:
        if broker in online and ends.get(broker, (-1, -1)) > ends[best]:
            best = broker
    if best == first:  # a member that did not report its end stays
        isr = tuple([broker for broker in known.isr if broker in online and ends.get(broker, ends[best]) == ends[best]])
    else:
        isr = (best, *[broker for broker in members if broker != best and ends.get(broker) == ends[best]])
    if best == first and set(isr) == set(known.isr):
        return None
    after = known.next(best, isr)
    return replace(after, eligible=tuple([broker for broker in after.eligible if broker not in ends]))


def longest(
    replicas: Replicas, known: Leadership, online: Collection[int], ends: Mapping[int, tuple[int, int]]
) -> Leadership | None:
    """For an unclean election: the replica with the longest log of those whose end is known; None if there is none."""
    answered = [broker for broker in replicas.all if broker in online and broker in ends]
    if not answered:
        return None
    best = max(answered, key=lambda broker: (ends[broker], broker in known.isr))
    if best not in known.isr:
        return uncleanly(known, best)
    after = known.next(best, tuple([member for member in known.isr if ends.get(member) == ends[best]]))
    return replace(after, eligible=())


def uncleanly(known: Leadership, broker: int) -> Leadership:
    """The leadership of a replica that may lack committed records: what it has counts from now on."""
    return replace(known.next(broker, (broker,), recovering=True), eligible=())


def without_restarted(
    replicas: Replicas, known: Leadership, online: Collection[int], restarted: Collection[int]
) -> Leadership | None:
    """Take members that restarted unseen out of the ISR and elect another. None if no other member is alive."""
    left = tuple([broker for broker in known.isr if broker in online and broker not in restarted])
    if not left or left == known.isr:
        return None
    if known.leader in left:
        return known.next(known.leader, left)
    return known.next(next(broker for broker in replicas.all if broker in left), left)


def for_reassignment(replicas: Replicas, known: Leadership, online: Collection[int]) -> Leadership | None:
    for broker in target_of(replicas):
        if broker in online and broker in known.isr:
            return known.next(broker, known.isr)
    return None


def for_preferred(replicas: Replicas, known: Leadership, online: Collection[int]) -> Leadership | None:
    preferred = replicas.all[0] if replicas.all else NO_LEADER
    if preferred in online and preferred in known.isr:
        return known.next(preferred, known.isr)
    return None


def for_shutdown(
    replicas: Replicas, known: Leadership, reachable: Collection[int], stopping: Collection[int]
) -> Leadership | None:
    """`reachable` are live brokers, with those that are shutting down."""
    for broker in replicas.all:
        if broker in reachable and broker in known.isr and broker not in stopping:
            return known.next(broker, tuple([member for member in known.isr if member not in stopping]))
    return None


def without_replicas(
    known: Leadership, lost: Collection[int], trusted: Collection[int] | None = None
) -> Leadership | None:
    """The leadership without lost replicas; None if nothing changes. The ISR stays as it is if none of its members is
    left, or none of the `trusted`: any of the lost ones may be the only replica with every record."""
    leader = NO_LEADER if known.leader in lost else known.leader
    left = tuple([member for member in known.isr if member not in lost])
    isr = left if any(trusted is None or member in trusted for member in left) else known.isr
    if leader == known.leader and isr == known.isr:
        return None
    return known.next(leader, isr)


def reassigned_to(replicas: Replicas, target: tuple[int, ...]) -> Replicas:
    """The assignment when a reassignment begins or is replaced: added replicas first, in the order of the target.

    Replicas that a running reassignment was adding are not part of its original replicas, so a new target without them
    drops them.
    """
    origin = [broker for broker in replicas.all if broker not in replicas.adding]
    everyone = tuple(dict.fromkeys((*target, *origin)))
    return Replicas(
        all=everyone,
        adding=tuple([broker for broker in everyone if broker not in origin]),
        removing=tuple([broker for broker in everyone if broker not in target]),
    )


def is_reassigned(replicas: Replicas, known: Leadership) -> bool:
    """Whether every target replica is in sync, so that the reassignment can end."""
    return set(target_of(replicas)) <= set(known.isr)
