"""The handlers of requests: one file per API key, under the stem of its message table, with all about that API.

`served` says what such a file declares and lists the keys that the broker serves, `dispatch` finds the handler of a
request, `call` is the handler's argument, `services` has what it may use.
"""
