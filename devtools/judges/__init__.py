"""Kafka's own programs judge three ixion brokers on a real ZooKeeper."""
