"""Replicas of partitions on this broker: append, read, high watermark, in-sync replicas, and what waits for them.

Begin with `partition` (one replica, leader or not), then `manager` (all of them), `append` and `fetch` (the two ways
in), and the operations that wait: `delayed_produce`, `delayed_fetch`, `delayed_delete_records`,
`delayed_elect_leader`. Everything runs on the event loop.
"""
