"""Gold as an HTTP API, whose answers are kept until a table they come from changes."""
