"""Spark's session: its settings, Java, jars, metastore, and the lock of a lake."""
