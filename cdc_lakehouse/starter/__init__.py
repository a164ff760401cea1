"""What ``init`` writes: the files of a small dbt project that uses the package."""
