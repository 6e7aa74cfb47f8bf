"""ixion: a Kafka-compatible broker hung on a hierarchical timing wheel."""

__version__ = "0.1.0"
