"""What brokers and clients say to each other, without I/O: bytes in, values out, and back.

From the outside in: `wire` (frames and connection state), `protocol` (messages), `records` (record batches), `sasl`
(logins), `model` (error codes, ids, names). Brokers and clients are built on these and on nothing else in common.
"""
