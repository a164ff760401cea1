"""The one error that ends a command with a sentence instead of a trace."""


class UserError(Exception):
    """Something the user can mend; the message says what, where and how."""
