"""Conditional assembly: which statements count."""

from __future__ import annotations

from dataclasses import dataclass

from .diagnostics import SourceFault
from .statements import Statement


@dataclass(slots=True)
class _Level:
    opened_by: Statement
    active: bool  # the current branch is assembled
    taken: bool  # some branch was, or none may be because an outer level is off
    seen_else: bool = False


class Conditions:
    """The stack of open `.if`s."""

    def __init__(self) -> None:
        self._levels: list[_Level] = []

    @property
    def active(self) -> bool:
        return not self._levels or self._levels[-1].active

    @property
    def depth(self) -> int:
        return len(self._levels)

    @property
    def wants_elseif(self) -> bool:
        """True if the condition of an `.elseif` at this place decides anything."""
        return bool(self._levels) and not self._levels[-1].taken

    def open(self, statement: Statement, condition: bool) -> None:
        self._levels.append(_Level(statement, condition, condition))

    def open_inactive(self, statement: Statement) -> None:
        """An `.if` inside a branch that is not assembled: none of its branches is."""
        self._levels.append(_Level(statement, False, True))

    def elseif(self, condition: bool) -> None:
        level = self._branch(".elseif")
        level.active = condition and not level.taken
        level.taken = level.taken or condition

    def otherwise(self) -> None:
        level = self._branch(".else")
        level.active, level.taken, level.seen_else = not level.taken, True, True

    def close(self) -> None:
        if not self._levels:
            raise SourceFault("`.endif` without `.if`")
        self._levels.pop()

    def cut_to(self, depth: int) -> list[Statement]:
        """Drop levels above `depth`; returns the statements that opened them."""
        dropped = [level.opened_by for level in self._levels[depth:]]
        del self._levels[depth:]
        return dropped

    def _branch(self, word: str) -> _Level:
        if not self._levels:
            raise SourceFault(f"`{word}` without `.if`")
        level = self._levels[-1]
        if level.seen_else:
            raise SourceFault(f"`{word}` after `.else`")
        return level
