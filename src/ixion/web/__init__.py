"""What a broker shows over HTTP: `/metrics` for Prometheus, `/healthz` for supervisors.

A server of our own on the broker's loop: two read-only pages need no framework, and the start has no time to import
one. `http` speaks the protocol, `exposition` the format of Prometheus, `families` says what is measured.
"""
