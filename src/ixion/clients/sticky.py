"""Shares out partitions so that members keep what they had, and are balanced all the same.

Three steps. Members keep what they own: a partition that two claim goes to the claim of the newer generation, and to
neither if both are of the same. What is left goes, one by one, to the member with the fewest partitions that may have
it. Then, as long as a member has two more than another that may have one of them, one moves, from the member with the
most; those that were not owned before move first.

Example: a owns t0 t1 t2 t3, b joins and owns nothing. Nothing is left over. a has four more than b: t0 moves, then t1.
With equal subscriptions no member ends with two more than another, and no more partitions move than that takes.
"""

from __future__ import annotations

from collections.abc import Mapping

from ixion.clients.assignors import Assignment, Members, in_order
from ixion.clients.metadata import TopicPartition


def assign(members: Members, counts: Mapping[str, int]) -> Assignment:
    order = in_order(members)
    readers = {topic: [each for each in order if topic in members[each].topics] for topic in counts}
    places = [
        TopicPartition(topic, number) for topic in sorted(counts) if readers[topic] for number in range(counts[topic])
    ]
    owners = find_owners(members, order, set(places))
    assignment: Assignment = {member: [] for member in members}
    for place, member in owners.items():
        assignment[member].append(place)
    left = [place for place in places if place not in owners]
    for place in sorted(left, key=lambda place: (len(readers[place.topic]), place)):
        assignment[fewest(assignment, readers[place.topic])].append(place)
    balance(assignment, readers, owners)
    return {member: sorted(given) for member, given in assignment.items()}


def find_owners(members: Members, order: list[str], places: set[TopicPartition]) -> dict[TopicPartition, str]:
    """Of the partitions that exist and that their owner still subscribes to."""
    claims: dict[TopicPartition, list[tuple[int, str]]] = {}
    for member_id in order:
        member = members[member_id]
        for place in member.owned:
            if place in places and place.topic in member.topics:
                claims.setdefault(place, []).append((member.generation, member_id))
    owners = {}
    for place in sorted(claims):
        newest = max(generation for generation, _ in claims[place])
        best = [member_id for generation, member_id in claims[place] if generation == newest]
        if len(set(best)) == 1:
            owners[place] = best[0]
    return owners


def fewest(assignment: Assignment, candidates: list[str]) -> str:
    return min(candidates, key=lambda member: len(assignment[member]))


def balance(assignment: Assignment, readers: Mapping[str, list[str]], owners: Mapping[TopicPartition, str]) -> None:
    """Each move brings two loads closer, so it ends."""
    while move_one(assignment, readers, owners):
        pass


def move_one(assignment: Assignment, readers: Mapping[str, list[str]], owners: Mapping[TopicPartition, str]) -> bool:
    """From the member with the most that can give one up. (If one member gave all it can before the next, it could end
    with less than its share, and more than needed would move.)"""
    for heavy in sorted(assignment, key=lambda member: -len(assignment[member])):
        for place in sorted(assignment[heavy], key=lambda place: (owners.get(place) == heavy, place)):
            light = fewest(assignment, readers[place.topic])
            if len(assignment[heavy]) - len(assignment[light]) >= 2:
                assignment[heavy].remove(place)
                assignment[light].append(place)
                return True
    return False
