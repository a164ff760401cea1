"""Northwind as a source database: tables, outbox, publication, and a loader."""
