"""The errors that end a command with a sentence instead of a trace."""

DONE = 0
FAILED = 1
WRONG_USAGE = 2
TOO_MUCH_REJECTED = 3
TRY_AGAIN = 75
STOPPED = 143


class UserError(Exception):
    """Something the user can mend; the message says what, where and how.

    Attributes:
        exit_code: what a command ends with.
    """

    exit_code = FAILED


class TransientError(UserError):
    """Something that may have passed when the same command is run again."""

    exit_code = TRY_AGAIN


class StoppedError(UserError):
    """Something that was not completed, as Spark was stopped from outside."""

    exit_code = STOPPED
