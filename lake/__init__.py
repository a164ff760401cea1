"""What all commands share: the lake's place, locks and Spark; errors, exit codes, versions."""

__version__ = "0.1.0"
