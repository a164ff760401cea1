"""TICKIT: rows of ours in three databases, and the servers that bring them to Kafka."""
