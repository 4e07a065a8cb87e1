"""A fault of a preprocessor line."""

from __future__ import annotations


class PreprocessorFault(Exception):
    """What is wrong with one line; the caller knows which."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
