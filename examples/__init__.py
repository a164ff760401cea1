"""dbt projects that use the package as a user does."""
