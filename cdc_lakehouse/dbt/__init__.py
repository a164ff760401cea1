"""dbt's plugin, and dbt in the ingest's process."""
