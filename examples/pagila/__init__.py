"""Pagila: films, their actors and categories, made up, as Parquet of change events."""
