"""Which lines of the source each test executes, imports left aside."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

QUIET_CALLS = 40
"""A function whose calls have shown no new line so often is no longer followed in this part."""


class Tracer:
    """Collects executed lines of functions in some files, part by part.

    Args:
        root: folder.
        files: paths below it, with slashes.
    """

    def __init__(self, root: Path, files: Collection[str]) -> None:
        self._names = {str(root / file): file for file in files}
        self._every: dict[CodeType, set[int]] = {}
        self._parts: list[_Part] = []
        self._found: dict[str, _Part] = {}

    def lines(self, name: str) -> dict[str, set[int]]:
        """Of a part: file -> lines."""
        part = self._found.get(name)
        return {self._names[file]: lines for file, lines in part.seen.items()} if part else {}

    @contextmanager
    def running(self) -> Iterator[None]:
        sys.settrace(self._call)
        try:
            yield
        finally:
            sys.settrace(None)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """What is executed meanwhile belongs to this part, and to none around it."""
        self._parts.append(self._found.setdefault(name, _Part()))
        try:
            yield
        finally:
            self._parts.pop()

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if code.co_filename not in self._names or code.co_name == "<module>" or not self._parts:
            return None
        part = self._parts[-1]
        seen = part.seen.setdefault(code.co_filename, set())
        if code not in self._every:
            self._every[code] = {line for _, _, line in code.co_lines() if line}
        quiet = part.quiet.get(code, 0)
        if quiet == QUIET_CALLS or self._every[code] <= seen:
            return None
        part.quiet[code] = quiet + 1

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            if frame.f_lineno not in seen:
                seen.add(frame.f_lineno)
                part.quiet[code] = 0
            return line

        return line(frame, event, argument)


class _Part:
    def __init__(self) -> None:
        self.seen: dict[str, set[int]] = {}
        self.quiet: dict[CodeType, int] = {}
