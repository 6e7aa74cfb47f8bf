"""A long conversation about groups, of which every answer is written down: brokers are compared by it.

Add a step here when an answer must be the same as Apache Kafka's (`test_answers_beside_kafka.py`). The words that steps
are made of are in `group_talk`.
"""

from __future__ import annotations

from ixion.language.protocol.registry import ApiKey
from tests.apis.group_kit import join_request
from tests.apis.group_talk import HUGE, TOPIC, Talk, describe
from tests.apis.raw import Raw


def converse(raw: Raw, other: Raw, topic_id: bytes) -> list[str]:
    """Two connections: while one waits for others to join, the other speaks."""
    talk = Talk(raw, topic_id)
    for part in (
        bad_joins,
        alone,
        upgrades,
        statics,
        offsets,
        beats,
        empty_handed,
        patterns,
        old_epochs,
        intervals,
        both_protocols,
    ):
        part(talk)
    together(talk, other)
    crowd(talk, other)
    return talk.said


def bad_joins(talk: Talk) -> None:
    for session_ms in (-1, 0, 5_999, 1_800_001, HUGE, -HUGE):
        talk.join("bad", 5, session_timeout_ms=session_ms, label=f"session {session_ms}")
    talk.join("", 5, label="no group")
    for version in (0, 3, 5, 7, 9):
        talk.join("bad", version, member_id="nobody", label="nobody")
        talk.join("bad", version, protocol_type="", label="no type")
        talk.join("bad", version, protocols=(), label="no protocols")
    talk.join("bad", 5, member_id="nobody", group_instance_id="i", label="unknown instance")
    talk.list()
    for rebalance_ms in (-1, 0, HUGE, -HUGE):
        talk.enter(f"odd{rebalance_ms}", 5, rebalance_timeout_ms=rebalance_ms, label=f"rebalance {rebalance_ms}")
    talk.join("odd", 5, names=["a", "b", "a"], label="twice the same")
    talk.join("odd", 5, names=[""], label="a protocol without a name")
    talk.delete("odd", "bad")


def alone(talk: Talk) -> None:
    for version in (0, 1, 3, 4, 6, 7, 9):
        group = f"alone{version}"
        answer = talk.enter(group, version)
        member, generation = answer.member_id, answer.generation_id
        talk.heartbeat(group, member, generation)
        talk.commit(group, member, generation)
        talk.sync(group, member, generation, given={member: b"all"})
        for there in (generation - 1, generation + 1, HUGE, -1):
            talk.heartbeat(group, member, there)
            talk.sync(group, member, there)
            talk.commit(group, member, there)
        talk.heartbeat(group, "forged", generation)
        talk.heartbeat(group, "", generation)
        talk.heartbeat(group, member, generation, "forged")
        talk.commit(group, "forged", generation)
        talk.commit(group)
        talk.commit(group, "", generation)
        talk.commit(group, member, generation)
        talk.sync(group, member, generation, protocol_type="connect")
        talk.sync(group, member, generation, protocol_name="sticky")
        talk.sync(group, member, generation, protocol_type=None)
        talk.sync(group, member, generation, protocol_name=None)
        talk.sync(group, member, generation)
        talk.sync(group, member, generation, version=3)
        talk.join(group, version, member_id="forged")
        talk.join(group, version, protocol_type="connect", label="another type")
        talk.join(group, version, names=["other"], label="nothing in common")
        talk.describe(group)
        talk.join(group, version, member_id=member, label="again")
        talk.describe(group)
        talk.commit(group, member, generation)
        talk.commit(group, member, generation + 1)
        talk.sync(group, member, generation + 1, given={member: b"anew", "forged": b"nothing"})
        talk.delete(group)
        talk.delete_offsets(group, TOPIC, 0)
        talk.delete_offsets(group, "u", 0)
        talk.leave(group, 0, ("forged", None))
        talk.leave(group, 1, (member, None))
        talk.leave(group, 1, (member, None))
        talk.describe(group)
        talk.commit(group, member, generation + 1)
        talk.heartbeat(group, member, generation + 1)
        talk.sync(group, member, generation + 1)
        talk.fetch(group)
        talk.delete_offsets(group, TOPIC, 0, 9)
        talk.delete(group)
        talk.heartbeat(group, member, generation + 1)
        talk.commit(group, member, generation + 1)
        talk.leave(group, 3, (member, None))
        talk.describe(group)
        talk.describe(group, 5)
        talk.delete(group)
        talk.delete_offsets(group, TOPIC, 0)
    talk.list("Empty", "stable")


def upgrades(talk: Talk) -> None:
    """A member that comes back with other protocols."""
    answer = talk.enter("up", 9, names=["range"])
    member = answer.member_id
    talk.sync("up", member, 1, given={member: b"1"})
    talk.join("up", 9, member_id=member, names=["sticky", "range"], label="both")
    talk.sync("up", member, 2, given={member: b"2"}, protocol_name="sticky")
    talk.join("up", 9, member_id=member, names=["sticky"], label="the new one")
    talk.sync("up", member, 3, given={}, protocol_name="sticky")
    talk.join("up", 9, member_id=member, names=["sticky"], protocol_type="connect", label="another type")
    talk.leave("up", 5, (member, None))
    again = talk.enter("up", 9, names=["x"], protocol_type="connect")
    talk.describe("up")
    talk.leave("up", 5, (again.member_id, None))


def statics(talk: Talk) -> None:
    for version in (5, 9):
        group = f"static{version}"
        first = talk.enter(group, version, group_instance_id="i").member_id
        talk.sync(group, first, 1, given={first: b"mine"}, group_instance_id="i")
        second = talk.join(group, version, group_instance_id="i", label="returns").member_id
        talk.sync(group, first, 1, group_instance_id="i")
        talk.sync(group, second, 1, group_instance_id="i")
        talk.heartbeat(group, first, 1, "i")
        talk.heartbeat(group, first, 1)
        talk.heartbeat(group, second, 1, "j")
        talk.commit(group, first, 1, group_instance_id="i")
        talk.commit(group, second, 1, group_instance_id="i")
        talk.join(group, version, member_id=first, group_instance_id="i", label="fenced")
        talk.join(group, version, member_id=second, group_instance_id="j", label="another name")
        talk.leave(group, 3, (first, "i"), ("", "j"), ("forged", None), (second, "j"), ("", None))
        talk.join(group, version, group_instance_id="i", names=["other"], label="other protocols")
        talk.describe(group)
        talk.leave(group, 5, ("", "i"), ("", "i"))
        talk.leave(group, 5)
        talk.describe(group)


def offsets(talk: Talk) -> None:
    talk.fetch("nobody")
    talk.commit("plain", "member", 3)
    talk.commit("plain", "member", -1)
    talk.commit("plain", metadata="m" * 4096)
    talk.commit("plain", metadata="m" * 4097, number=1)
    talk.commit("plain", metadata="é" * 4096, number=1)
    talk.commit("plain", metadata=None, number=2)
    talk.commit("plain", offset=-1, number=1)
    talk.commit("plain", offset=-500, number=1)
    talk.commit("plain", offset=2**63 - 1, number=1)
    talk.commit("plain", leader_epoch=HUGE, number=1)
    talk.commit("plain", partitions=(0, 9, -1))
    talk.commit("plain", topic="missing")
    talk.commit("plain", topic="not a name!")
    talk.commit("plain", group_instance_id="i")
    talk.commit("")
    talk.fetch("")
    talk.fetch("plain")
    talk.fetch("plain", "member", 5)
    talk.list(types=("classic", "nothing"))
    talk.describe("plain")
    talk.describe("")
    talk.delete("plain", "missing", "", "plain")
    talk.delete_offsets("", TOPIC, 0)


def beats(talk: Talk) -> None:
    talk.first_beat("", "a")
    talk.first_beat("k", "")
    talk.first_beat("k", "", version=0, rebalance_timeout_ms=-1)
    talk.first_beat("k", "a", rebalance_timeout_ms=-1)
    talk.first_beat("k", "a", subscribed_topic_names=None)
    talk.first_beat("k", "a", subscribed_topic_names=())
    talk.beat("k", "a", -1)
    talk.first_beat("k", "a", owns=(1,))
    talk.first_beat("k", "a", owns=None)
    talk.first_beat("k", "a", instance_id="")
    talk.first_beat("k", "a", rack_id="")
    talk.first_beat("k", "a", server_assignor="sticky")
    talk.first_beat("k", "a", server_assignor="")
    talk.first_beat("k", "a", subscribed_topic_names=None, subscribed_topic_regex="[")
    talk.first_beat("k", "a", subscribed_topic_names=(TOPIC,), subscribed_topic_regex="u.*")
    talk.beat("k", "a", -1)
    for rebalance_ms in (-2, -HUGE, 0, HUGE):
        talk.first_beat("k", "a", rebalance_timeout_ms=rebalance_ms)
        talk.beat("k", "a", -1)
    talk.first_beat("k", "a", subscribed_topic_names=tuple(f"{n:0>240}" for n in range(8_000)))
    for epoch in (1, -1, -2, -3, HUGE):
        talk.beat("k", "a", epoch)
    talk.beat("missing", "a", 1)
    talk.beat("missing", "a", -1)
    talk.first_beat("k", "a")
    talk.first_beat("k", "a")
    talk.beat("k", "a", 1)
    talk.describe_consumers("k")


def empty_handed(talk: Talk) -> None:
    """Members that read nothing, that read a topic that is not there, that change their mind, that join once more."""
    talk.first_beat("n", "a", subscribed_topic_names=())
    talk.first_beat("n", "b", subscribed_topic_names=())
    talk.describe_consumers("n")
    talk.beat("n", "a", 1, subscribed_topic_names=("missing",))
    talk.beat("n", "a", 2, subscribed_topic_names=(TOPIC,))
    talk.beat("n", "b", 1, owns=())
    talk.describe_consumers("n")
    talk.first_beat("n", "a")
    talk.beat("n", "b", 3, owns=(), subscribed_topic_names=(TOPIC,))
    talk.beat("n", "a", 3, owns=(0, 1, 2, 3))
    talk.first_beat("n", "a")
    talk.beat("n", "b", 4, owns=())
    talk.describe_consumers("n")
    talk.beat("n", "a", 4, owns=(0, 1), subscribed_topic_names=())
    talk.beat("n", "a", 4, owns=())
    talk.beat("n", "b", -1)
    talk.beat("n", "a", -1)
    talk.describe_consumers("n")
    talk.first_beat("n", "a")
    talk.first_beat("n2", "b", server_assignor="range")
    talk.first_beat("n2", "c", subscribed_topic_names=())
    talk.beat("n2", "c", -1)
    talk.first_beat("n2", "a", subscribed_topic_names=())
    talk.beat("n2", "b", 2, owns=(0, 1, 2, 3))
    talk.beat("n2", "a", -1)
    talk.beat("n2", "b", -1)


def patterns(talk: Talk) -> None:
    """Epochs when the pattern of a member is new, matches nothing, is another's already, or is given up."""
    joins = {"member_epoch": 0, "rebalance_timeout_ms": 30_000, "topic_partitions": ()}
    talk.settle("p", "a", 2, **joins, subscribed_topic_regex="re.*")
    talk.describe_consumers("p")
    talk.settle("p", "b", 3, **joins, subscribed_topic_regex="re.*")
    talk.describe_consumers("p")
    talk.beat("p", "b", 3, subscribed_topic_regex="", owns=())
    talk.describe_consumers("p")
    talk.settle("q", "a", 1, **joins, subscribed_topic_regex="nothing.*")
    talk.describe_consumers("q")
    talk.beat("q", "a", 1, subscribed_topic_regex="", subscribed_topic_names=(TOPIC,))
    talk.describe_consumers("q")


def intervals(talk: Talk) -> None:
    """A group whose assignment is not computed anew as long as we speak of it (KIP-1263)."""
    for value in ("15001", "-1", "x", "15000"):
        talk.set_interval("slow", value)
    talk.first_beat("slow", "a")
    everything = (0, 1, 2, 3)
    talk.first_beat("slow", "b")
    talk.describe_consumers("slow")
    talk.beat("slow", "a", 2, owns=everything)
    talk.beat("slow", "b", 2, owns=())
    talk.first_beat("slow", "b")
    talk.commit("slow", "b", 2)
    talk.beat("slow", "b", 2, owns=(), subscribed_topic_names=("missing",))
    talk.beat("slow", "a", 2, owns=everything, subscribed_topic_names=("missing",))
    talk.describe_consumers("slow")
    talk.commit("slow", "a", 2, partitions=everything)
    talk.beat("slow", "a", 2, owns=everything)
    talk.beat("slow", "a", 2, owns=(3,))
    talk.beat("slow", "a", 2, owns=())
    talk.describe_consumers("slow")
    talk.beat("slow", "a", -1)
    talk.beat("slow", "b", 2, owns=())
    talk.describe_consumers("slow")
    talk.set_interval("slow", "0")
    talk.beat("slow", "b", 2, owns=(), subscribed_topic_names=(TOPIC,))
    talk.set_interval("slow", "15000")
    classic = talk.enter("slow", 9)
    talk.heartbeat("slow", classic.member_id, classic.generation_id)
    talk.sync("slow", classic.member_id, classic.generation_id)
    talk.describe_consumers("slow")
    talk.set_interval("slow", "0")
    talk.beat("slow", "b", 7, owns=everything)
    talk.describe_consumers("slow")
    talk.heartbeat("slow", classic.member_id, classic.generation_id)
    talk.sync("slow", classic.member_id, classic.generation_id)


def old_epochs(talk: Talk) -> None:
    """Partitions go from one member to another; commits name epochs old and new (KIP-1251)."""
    first = talk.first_beat("e", "a").member_epoch
    everything = (0, 1, 2, 3)
    talk.commit("e", "a", first, partitions=everything)
    talk.commit("e", "a", first, version=8)
    talk.commit("e", "a", first + 1)
    talk.commit("e", "b", first)
    talk.commit("e")
    talk.fetch("e", "a", first)
    talk.fetch("e", "a", first + 1)
    talk.fetch("e", "b", first)
    talk.beat("e", "a", first, owns=everything)
    talk.beat("e", "a", first + 1, owns=everything)
    talk.beat("e", "a", HUGE, owns=everything)
    second = talk.first_beat("e", "b").member_epoch
    talk.commit("e", "b", second, number=3)
    told = talk.beat("e", "a", first, owns=everything)
    kept = told.assignment.topic_partitions[0].partitions
    lost = tuple(each for each in everything if each not in kept)
    talk.commit("e", "a", first, partitions=everything)
    talk.beat("e", "a", first, owns=everything)
    talk.beat("e", "b", second, owns=())
    now = talk.beat("e", "a", first, owns=kept).member_epoch
    talk.commit("e", "a", first, partitions=kept)
    talk.commit("e", "a", first, partitions=kept[:1] + lost[:1])
    talk.commit("e", "a", first, partitions=lost)
    talk.commit("e", "a", now, partitions=lost)
    talk.commit("e", "a", now + 1, partitions=kept)
    talk.fetch("e", "a", first)
    talk.beat("e", "b", second, owns=())
    talk.commit("e", "b", second, partitions=lost)
    talk.commit("e", "b", second - 1, partitions=lost)
    talk.describe_consumers("e")
    talk.beat("e", "b", -1)
    talk.beat("e", "a", now, owns=kept)
    third = talk.beat("e", "a", now, owns=kept).member_epoch
    talk.commit("e", "a", first, partitions=kept)
    talk.commit("e", "a", first, partitions=lost)
    talk.commit("e", "a", now, partitions=lost)
    talk.commit("e", "a", third, partitions=lost)
    talk.delete("e")
    talk.delete_offsets("e", TOPIC, 0)
    talk.beat("e", "a", -1)
    talk.commit("e", "a", third)
    talk.commit("e")
    talk.describe_consumers("e")
    talk.delete("e")
    static = talk.first_beat("s", "a", instance_id="i").member_epoch
    talk.first_beat("s", "b", instance_id="i")
    talk.first_beat("s", "a", instance_id="i")
    talk.beat("s", "a", -2)
    talk.beat("s", "a", -2, instance_id="j")
    talk.beat("s", "b", -2, instance_id="i")
    talk.beat("s", "a", -2, instance_id="i")
    talk.commit("s", "a", static)
    talk.first_beat("s", "a", instance_id="i")
    talk.commit("s", "a", static)
    talk.beat("s", "a", -2, instance_id="i")
    back = talk.first_beat("s", "b", instance_id="i").member_epoch
    talk.commit("s", "b", back)
    talk.commit("s", "b", 0)
    talk.beat("s", "a", static, instance_id="i")
    talk.beat("s", "b", -1, instance_id="i")


def both_protocols(talk: Talk) -> None:
    """Members of the classic protocol in a consumer group, and requests of one kind for groups of the other."""
    epoch = talk.first_beat("both", "a").member_epoch
    talk.describe("both")
    talk.describe_consumers("alone9")
    talk.beat("alone9", "a", 1)
    talk.join("both", 9, names=["x"], label="unreadable")
    talk.join("both", 9, protocol_type="connect", label="another type")
    classic = talk.enter("both", 9)
    member = classic.member_id
    talk.sync("both", member, classic.generation_id)
    talk.sync("both", member, classic.generation_id + 1)
    talk.heartbeat("both", member, classic.generation_id)
    talk.heartbeat("both", "a", epoch)
    talk.commit("both", member, classic.generation_id, version=8)
    talk.commit("both", member, classic.generation_id + 1)
    talk.leave("both", 3, ("a", None))
    talk.leave("both", 3, (member, None))
    talk.beat("both", "a", -1)
    talk.describe_consumers("both")
    talk.list(types=("consumer",))


def together(talk: Talk, other: Raw) -> None:
    """Two members: the second one's join sends the first one back."""
    beside = Talk(other, talk.topic_id)
    beside.names = talk.names
    first = talk.enter("two", 9, names=["range", "sticky"]).member_id
    talk.sync("two", first, 1, given={first: b"all"})
    second = beside.join("two", 9, names=["sticky"]).member_id
    beside.join("two", 9, member_id=second, names=["sticky"], wait=False)
    while describe(talk.raw, "two").group_state == "Stable":
        pass  # the join comes by another connection, and may take its time
    talk.describe("two")
    talk.heartbeat("two", first, 1)
    talk.commit("two", first, 1)
    talk.sync("two", first, 1)
    talk.join("two", 9, member_id=first, names=["range", "sticky"])
    beside.joined("two", "the second one")
    talk.describe("two")
    talk.heartbeat("two", first, 2)
    beside.heartbeat("two", second, 2)
    beside.commit("two", second, 2)
    talk.sync("two", first, 2, given={first: b"one"}, protocol_name="sticky")
    beside.sync("two", second, 2, protocol_name="sticky")
    talk.describe("two")
    beside.join("two", 9, member_id=second, names=["sticky"], label="a follower again")
    beside.sync("two", second, 2, protocol_name="sticky")
    beside.leave("two", 3, (second, None), (first, None))
    talk.heartbeat("two", first, 2)
    talk.describe("two")
    talk.said += beside.said


def crowd(talk: Talk, other: Raw) -> None:
    """No more than group.max.size."""
    first = talk.enter("many", 5, group_instance_id="a")
    talk.sync("many", first.member_id, 1, given={first.member_id: b"all"}, group_instance_id="a")
    with Raw(other.bootstrap) as third, Raw(other.bootstrap) as fourth:
        for place, waiting in enumerate((other, third, fourth)):
            instance = "bc"[place] if place < 2 else None
            waiting.send(
                ApiKey.JOIN_GROUP, 3 if instance is None else 5, join_request("many", group_instance_id=instance)
            )
            while len(describe(talk.raw, "many").members) < 2 + place:
                pass  # it has not come through yet
            talk.heartbeat("many", first.member_id, 1, "a")
            talk.describe("many")
        talk.join("many", 5, member_id=first.member_id, group_instance_id="a", label="the fourth to join again")
        for waiting in (other, third, fourth):
            one = Talk(waiting, talk.topic_id)
            one.names, one.said = talk.names, talk.said
            one.joined("many", "one of the others", leader_may_differ=True)
        talk.join("many", 5, label="one more")
        talk.describe("many")
