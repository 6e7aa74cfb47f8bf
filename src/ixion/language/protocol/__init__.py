"""Kafka's messages: tables in a notation of our own, and a codec that checks a frame before it builds a value.

Start with a table (`messages.k00_produce`), then its notation (`notation`), how it becomes a codec (`resolve`) and how
that walks a frame (`codec.cursor`, `codec.structure`). `registry` lists the API keys and versions, `envelope` reads and
writes whole requests and responses, `storage` the records that Kafka keeps in its internal topics.
"""
