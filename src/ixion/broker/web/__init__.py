"""The HTTP pages of a broker: `/metrics` for Prometheus, `/healthz` for supervisors.

A server on the broker's loop: `server` has the port, `http` the connections (the protocol is h11's), `guard` refuses
requests of other sites, `exposition` writes the format of Prometheus, `families` reads the metrics.
"""
