"""The HTTP pages of a broker: `/metrics` for Prometheus, `/healthz` for supervisors.

Our own server on the broker's loop: a few read-only pages need no framework (`http` and `exposition` have the figures).
`http` implements the protocol, `exposition` writes the format of Prometheus, `families` reads the metrics.
"""
