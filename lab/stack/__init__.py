"""A local stack: PostgreSQL, Kafka and Kafka Connect on one machine."""
