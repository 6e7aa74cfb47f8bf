"""What a broker shows over HTTP: `/metrics` for Prometheus, `/healthz` for supervisors.

A server of our own on the broker's loop: two read-only pages need no framework (`http` and `exposition` have the
figures). `http` speaks the protocol, `exposition` writes the format of Prometheus, `families` reads the metrics.
"""
