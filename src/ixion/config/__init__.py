"""Settings by Kafka's names: their facts (`setting.py` and the tables), where values come from, how they change."""
