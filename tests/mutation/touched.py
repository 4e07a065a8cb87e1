"""Which lines of the source a test file executes, imports left aside."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any


class Tracer:
    """Collects executed lines of functions below a folder.

    Attributes:
        lines: file below the source folder -> sorted lines.
    """

    def __init__(self, folder: Path) -> None:
        self._root = str(folder)
        self._below = len(str(folder.parents[1])) + 1
        self._seen: dict[str, set[int]] = {}

    @property
    def lines(self) -> dict[str, list[int]]:
        return {file[self._below :]: sorted(lines) for file, lines in sorted(self._seen.items())}

    @contextmanager
    def running(self) -> Iterator[None]:
        sys.settrace(self._call)
        try:
            yield
        finally:
            sys.settrace(None)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(self._root) or code.co_name == "<module>":
            return None
        seen = self._seen.setdefault(code.co_filename, set())
        every = {line for _, _, line in code.co_lines() if line}
        if every <= seen:
            return None

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            seen.add(frame.f_lineno)
            return line

        seen.add(frame.f_lineno)
        return line
