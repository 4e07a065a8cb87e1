"""Which line of the user's own code is running: the place every message about a graph points to."""

from __future__ import annotations

import linecache
import os
import sys
from dataclasses import dataclass
from types import FrameType

OWN_MODULES = (
    "tilewright.api",
    "tilewright.graph",
    "tilewright.operators",
    "tilewright.ops",
    "tilewright.source_location",
)
"""Modules whose frames are not the user's. The ready models are written as a user would write them."""

SHOWN_SOURCE = 80
"""Characters of a source line that a message shows."""


@dataclass(frozen=True)
class SourceLocation:
    """A line of source: `path` as the interpreter knows it, `line` from 1."""

    path: str
    line: int

    @property
    def short(self) -> str:
        """`file.py:12`, without folders, so that nothing made from it depends on where the project lies."""
        return f"{os.path.basename(self.path)}:{self.line}"

    def __str__(self) -> str:
        return f"{_nearest_path(self.path)}:{self.line}"

    def with_source(self) -> str:
        """The location followed by the text of the line, where the source can be read."""
        text = linecache.getline(self.path, self.line).strip()
        if len(text) > SHOWN_SOURCE:
            text = f"{text[: SHOWN_SOURCE - 3]}..."
        return f"{self}: `{text}`" if text else str(self)


def user_frame() -> FrameType | None:
    """Innermost frame that belongs to the user and not to Tilewright's tracing; None outside any."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if not any(module == own or module.startswith(own + ".") for own in OWN_MODULES):
            return frame
        frame = frame.f_back
    return None


def user_location() -> SourceLocation | None:
    """Line the user's code is at; None when no user code is running."""
    frame = user_frame()
    return None if frame is None else SourceLocation(frame.f_code.co_filename, frame.f_lineno)


def _nearest_path(path: str) -> str:
    """Path relative to the working directory when that is shorter to read."""
    try:
        relative = os.path.relpath(path)
    except ValueError:
        return path
    return path if relative.startswith("..") else relative
