"""Settings by Kafka's names: what there is (`setting.py` and the tables), where values come from, how they change."""
