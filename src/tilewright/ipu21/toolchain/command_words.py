"""Commands of users, such as `gcc -E`, as words."""

from __future__ import annotations

import shlex

from ...errors import UsageError


def command_words(command: str, what: str) -> list[str]:
    """The words of a command line. Raises UsageError, naming `what` it is, for open quotes or no word."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"the {what} command has no end: {str(error).lower()}", where=command) from None
    if not words:
        raise UsageError(f"the {what} command is empty")
    return words
