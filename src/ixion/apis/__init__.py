"""The handlers of requests: one file per API key, under the stem of its message table.

`served` lists what the broker speaks, `dispatch` brings a request to its handler, `call` is what a handler gets and
`services` what it may use. Each `kNN_name.py` has one function, `make(services)`, that gives the handler.
"""
