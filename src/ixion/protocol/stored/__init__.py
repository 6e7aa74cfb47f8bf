"""Tables of messages that are stored in logs and files. `ixion.protocol.storage` reads and writes them."""
