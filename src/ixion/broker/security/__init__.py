"""Authentication: TLS contexts, and gates that refuse requests until the client has authenticated."""
