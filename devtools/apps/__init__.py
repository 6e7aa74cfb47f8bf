"""Applications that were written for Apache Kafka, run unmodified against ixion: `make apps`.

Each is brought by name from its package registry, does one small scenario and checks it itself. One that fails is run
again beside Apache Kafka, so that the report says whose fault it is.
"""
