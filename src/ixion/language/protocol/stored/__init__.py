"""Tables of messages that are stored in logs and files. `ixion.language.protocol.storage` reads and writes them."""
