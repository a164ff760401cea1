"""Stand-ins of the package's macros for sqlfluff, which lints the text of the models.

The macros run statements or ask dbt's graph; sqlfluff (``library_path``) has neither.
"""

from __future__ import annotations


def change_events(bronze: object) -> str:
    """A staging model's query."""
    return f"select * from {bronze}"


def child_rows(parents: object, **settings: object) -> str:
    """The query of a table of an array's elements."""
    return f"select * from {parents}"


def current_rows(events: object) -> str:
    """A silver model's query."""
    return f"select * from {events}"


def row_history(events: object) -> str:
    """A history's query."""
    return f"select * from {events}"


def rejected_rows(staging_models: object) -> str:
    """The query of the table of rejected rows."""
    return "select 1 as one"


def reads_increment() -> str:
    """Whether a model reads what has arrived."""
    return "true"


def arrived_in_this_run(input_name: str) -> str:
    """The condition of what has arrived."""
    return "ingest_batch > 0"
