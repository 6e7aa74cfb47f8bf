"""The share consumer: a queue with a lock and an acknowledgement for each record (KIP-932).

`consumer.ShareConsumer` is the blocking face of `ixion.clients.core.share`; `ixion.clients.aio` has the other one. The
package itself imports nothing, so a caller imports only what it uses.
"""
