"""What all commands share: the lake's place, its locks and Spark; errors and exit codes."""

__version__ = "0.1.0"
