"""The recurring tasks of a broker, on disks, tree and replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ixion.broker.log.disk_guard import DiskGuard
from ixion.broker.startup.memory import MemoryKeeping, MemoryReturn
from ixion.config import log_settings as log
from ixion.config import replica_settings as replica
from ixion.config.cluster_settings import ZOOKEEPER_SESSION_TIMEOUT_MS

if TYPE_CHECKING:
    from ixion.broker.log.cleaner import Cleaner
    from ixion.broker.startup.parts import Parts
    from ixion.broker.startup.reopening import Reopening

LONG: Final = 10 * 365 * 24 * 3_600_000  # milliseconds; a longer interval means never
LOW_DISK_BYTES: Final = 128 << 20  # free space below which appends are refused
MEMORY_CHECK_MS: Final = 500
DISK_CHECK_MS: Final = 2_000
DELETE_CHECK_MS: Final = 30_000
BRING_BACK: Final = "bring-back"


def schedule(parts: Parts) -> None:
    scheduler, logs, config = parts.scheduler, parts.logs, parts.config.current
    delay = config[log.LOG_INITIAL_TASK_DELAY_MS]
    scheduler.every("log-retention", config[log.LOG_RETENTION_CHECK_INTERVAL_MS], logs.look_after, delay)
    if config[log.LOG_FLUSH_SCHEDULER_INTERVAL_MS] < LONG:
        scheduler.every("log-flusher", config[log.LOG_FLUSH_SCHEDULER_INTERVAL_MS], logs.flush_due, delay)
    scheduler.every(
        "recovery-point-checkpoint",
        config[log.LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS],
        logs.checkpoints.write_recovery_points,
    )
    scheduler.every(
        "log-start-offset-checkpoint",
        config[log.LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS],
        logs.checkpoints.write_log_starts,
    )
    scheduler.every(
        "high-watermark-checkpoint",
        config[replica.REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS],
        logs.checkpoints.write_high_watermarks,
    )
    scheduler.every("delete-logs", DELETE_CHECK_MS, lambda: logs.doomed_folders.delete_due(parts.clock_ms()))
    if config[log.LOG_CLEANER_ENABLE]:
        cleaners: list[Cleaner] = []

        def clean() -> None:
            current = parts.config.current
            if not cleaners:
                from ixion.broker.log.cleaner import Cleaner  # not at the start: it takes 5 ms

                cleaners.append(Cleaner(logs))
            cleaners[0].reconfigure(
                current[log.LOG_CLEANER_DEDUPE_BUFFER_SIZE],
                current[log.LOG_CLEANER_IO_BUFFER_LOAD_FACTOR],
                current[log.LOG_CLEANER_IO_MAX_BYTES_PER_SECOND],
            )
            while cleaners[0].clean_dirtiest(parts.clock_ms()) is not None:
                pass

        scheduler.every("log-cleaner", lambda: parts.config.current[log.LOG_CLEANER_BACKOFF_MS], clean)
    guard = DiskGuard(LOW_DISK_BYTES)

    def look_at_disks() -> None:
        for directory in logs.directories:
            guard.check(directory.state)
        logs.mend()

    scheduler.every("disk-guard", DISK_CHECK_MS, look_at_disks, 0)
    reopening = None if parts.engine is not None else make_reopening(parts)
    scheduler.every_on_loop("offline-partitions", DISK_CHECK_MS, lambda: bring_back(parts, reopening))
    if parts.options.owns_process:
        keeping = MemoryKeeping(scheduler.workers)
        returning = MemoryReturn(scheduler.workers)

        def look_at_memory() -> None:
            network = parts.server.snapshot()
            keeping.look(network.bytes_in + network.bytes_out)
            returning.look(network.unsent_bytes)

        scheduler.every_on_loop("memory", MEMORY_CHECK_MS, look_at_memory)
    scheduler.every_on_loop("isr-expiration", config[replica.REPLICA_LAG_TIME_MAX_MS] // 2, parts.replicas.shrink_isr)


def make_reopening(parts: Parts) -> Reopening:
    from ixion.broker.startup.reopening import Reopening

    return Reopening(parts)


def bring_back(parts: Parts, reopening: Reopening | None = None) -> None:
    """Let the controller, of a lone broker or of the cluster, finish what had to wait for room on a disk."""
    if not hasattr(parts, "controller"):
        return  # the start has not reached that step
    if reopening is not None:
        reopening.look()
        return
    controller = parts.sole_controller
    if controller.has_more_to_do and not any(task.get_name() == BRING_BACK for task in parts.background):
        task = parts.loop.create_task(controller.bring_back(), name=BRING_BACK)
        parts.background.add(task)
        task.add_done_callback(parts.background.discard)


def keep_session(parts: Parts) -> None:
    """Keep the session of the embedded engine alive while this broker runs. A ZooKeeper client does that by itself."""
    engine = parts.engine
    if engine is not None:
        timeout = parts.config.current[ZOOKEEPER_SESSION_TIMEOUT_MS]
        parts.scheduler.every("metadata-session", timeout // 3, engine.beat)
