"""Authentication: TLS contexts, and the gates that let a client in only after it has authenticated."""
