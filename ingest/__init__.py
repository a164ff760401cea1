"""Thin PySpark ingest: Debezium records into append-only bronze Hudi tables."""
