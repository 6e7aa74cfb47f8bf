"""ixion: a Kafka-compatible broker hung on a hierarchical timing wheel."""

__version__ = "0.2.0"
