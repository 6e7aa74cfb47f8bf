"""How values lie on the wire. Compiled; knows the types of the protocol, but no message."""
