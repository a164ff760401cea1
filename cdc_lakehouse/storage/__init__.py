"""The lake's place, folders and tables, without Spark."""
