"""Settings with Kafka's names: their definitions (`setting.py` and the tables), sources, and changes at run time."""
