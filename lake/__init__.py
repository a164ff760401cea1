"""What all commands share: the lake's place, locks, Spark; errors, exit codes, version."""

__version__ = "0.1.0"
