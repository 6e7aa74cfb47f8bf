"""The share partitions that this broker leads, and the settings of their groups, made when the first member fetches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ixion.broker.startup.dead_letters import DeadLetters
from ixion.config import share_group
from ixion.config.broker import BrokerConfig
from ixion.config.share_settings import SHARE_FETCH_PURGATORY_PURGE_INTERVAL_REQUESTS

if TYPE_CHECKING:
    from ixion.broker.share.manager import ShareManager
    from ixion.broker.share.terms import Terms
    from ixion.broker.startup.parts import Parts

MOST_KNOWN: Final = 10_000  # groups with settings of their own that are kept ready
NO_SETTINGS: Final[Mapping[str, str]] = {}


class LateShareLeaders:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._made: ShareManager | None = None
        self._letters: DeadLetters | None = None

    @property
    def made(self) -> ShareManager | None:
        return self._made

    def get(self) -> ShareManager:
        made = self._made
        if made is None:
            from ixion.broker.share.manager import ShareManager

            parts = self._parts
            terms = GroupTerms(parts)
            letters = DeadLetters(parts)
            made = self._made = ShareManager(
                parts.replicas,
                parts.shares.router(),
                timer=parts.timer,
                clock_ms=parts.clock_ms,
                monotonic_ms=lambda: int(parts.loop.time() * 1_000),
                call_soon=parts.loop.call_soon,
                terms_of=terms.of,
                most_sessions=terms.settings.max_sessions,
                purge_interval=parts.config.current[SHARE_FETCH_PURGATORY_PURGE_INTERVAL_REQUESTS],
                post=letters,
            )
            parts.replicas.on_readable = made.partition_moved_on
            self._letters = letters
        return made

    def follow(self, topic: str, partition: int, leader_epoch: int) -> None:
        if self._made is not None:
            self._made.on_leadership(topic, partition, leader_epoch)

    def stop(self) -> None:
        if self._made is not None:
            self._parts.replicas.on_readable = None
            self._made.shutdown()
        if self._letters is not None:
            self._letters.stop()


class GroupTerms:
    """The settings of each group, read again when they or those of the broker have changed.

    Groups without settings of their own share one entry: nothing is remembered of names that any client may invent.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._known: dict[str, tuple[BrokerConfig, Mapping[str, str], Terms]] = {}
        self.settings: Final = share_group.ShareGroupSettings(lambda: parts.config.current, self._own)

    def _own(self, group: str) -> Mapping[str, str]:
        return self._parts.image.group_configs.get(group, NO_SETTINGS)

    def of(self, group: str) -> Terms:
        current, own = self._parts.config.current, self._own(group)
        name = "" if own is NO_SETTINGS else group
        known = self._known.get(name)
        if known is not None and known[0] is current and known[1] is own:
            return known[2]
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        terms = self._read(group)
        self._known[name] = (current, own, terms)
        return terms

    def _read(self, group: str) -> Terms:
        from ixion.broker.share.terms import Backoff, Terms

        settings = self.settings
        reset = settings.reset(group)
        return Terms(
            lock_ms=settings.lock_duration_ms(group),
            delivery_limit=settings.delivery_limit(group),
            max_locks=settings.max_locks(group),
            may_renew=settings.own(group, share_group.RENEW_ENABLE),
            committed_only=settings.is_read_committed(group),
            from_earliest=reset.earliest,
            back_ms=reset.back_ms,
            backoff=Backoff(
                base_ms=settings.own(group, share_group.BACKOFF_MS),
                max_ms=settings.own(group, share_group.BACKOFF_MAX_MS),
                multiplier=settings.own(group, share_group.BACKOFF_MULTIPLIER),
                jitter=settings.own(group, share_group.BACKOFF_JITTER),
                on_timeout=settings.own(group, share_group.BACKOFF_ON_TIMEOUT),
            ),
            dead_letters=settings.own(group, share_group.DEAD_LETTER_TOPIC),
            copies=settings.own(group, share_group.DEAD_LETTER_COPY),
        )
