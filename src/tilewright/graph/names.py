"""Names of values: which are legal, and how a wanted name is made unique."""

from __future__ import annotations

import re

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
"""Legal names of graphs, values, inputs and outputs, in the text form and in packages."""

MAX_NAME = 200
"""Longest legal name, in characters."""


def is_name(text: str) -> bool:
    """Whether `text` can name a value."""
    return len(text) <= MAX_NAME and NAME.fullmatch(text) is not None


def legal(text: str, fallback: str) -> str:
    """`text` with every character that is not allowed replaced; `fallback` when nothing remains."""
    cleaned = re.sub(r"[^A-Za-z0-9_.]+", "_", text).strip("._")[:MAX_NAME]
    if not cleaned:
        return fallback
    return cleaned if is_name(cleaned) else f"{fallback}_{cleaned}"[:MAX_NAME]


class Names:
    """Hands out unique names, deterministically."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def claim(self, name: str) -> bool:
        """Take exactly `name`; False when it is taken already."""
        if name in self._taken:
            return False
        self._taken.add(name)
        return True

    def unique(self, wanted: str) -> str:
        """`wanted`, or `wanted_1`, `wanted_2` and so on."""
        name = wanted
        while not self.claim(name):
            self._next[wanted] = self._next.get(wanted, 0) + 1
            name = f"{wanted}_{self._next[wanted]}"
        return name

    def numbered(self, stem: str) -> str:
        """`stem_0`, `stem_1` and so on."""
        while True:
            number = self._next.setdefault(f"{stem}_", 0)
            self._next[f"{stem}_"] = number + 1
            if self.claim(f"{stem}_{number}"):
                return f"{stem}_{number}"
