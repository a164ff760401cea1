"""Debezium change streams to tables that analysts can trust, on Spark, dbt and Hudi."""

__version__ = "0.2.0"
