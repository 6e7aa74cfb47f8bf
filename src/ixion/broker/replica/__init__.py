"""The replicas of this broker: append, read, high watermark, in-sync replicas, and operations that wait for them.

Begin with `partition` (one replica, leader or not), then `manager` (all replicas), `append` and `fetch` (the entry
points), and the operations that wait: `delayed_produce`, `delayed_fetch`, `delayed_delete_records`,
`delayed_elect_leader`. Everything runs on the event loop.
"""
