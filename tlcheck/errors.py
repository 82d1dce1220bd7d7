"""The one exception that a user is meant to see as a line of text."""


class UsageError(Exception):
    """Bad usage: shown as `tlcheck: error: <message>`, exit code 2, never a traceback."""
