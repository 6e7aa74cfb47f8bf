"""The handlers of requests: one file per API key, under the stem of its message table.

`served` lists the API keys that the broker serves, `dispatch` finds the handler of a request, `call` is the handler's
argument, `services` has what it may use. Each `kNN_name.py` has one function, `make(services)`, that returns the
handler.
"""
