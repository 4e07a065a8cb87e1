"""What a mutant is: a source file with one guard less."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"


@dataclass(frozen=True)
class Mutant:
    """One edit of one file.

    Attributes:
        path: file below `SOURCE`, with slashes.
        line: of the edit, from 1.
        scope: function or class around it, dotted; "" outside.
        around: first and last line of that function; (0, 0) outside of any.
        what: kind of edit and the text it concerns, in one line.
        begin, end: bytes of the file that are replaced by `new`.
        number: which of the edits of this scope with the same `what` it is, from 1.
    """

    path: str
    line: int
    scope: str
    what: str
    begin: int
    end: int
    new: str
    around: tuple[int, int] = (0, 0)
    number: int = 1

    @property
    def name(self) -> str:
        """Unique, and the same whatever lines are above it."""
        place = f"{self.path}:{self.scope}" if self.scope else self.path
        return f"{place}: {self.what}" + (f" #{self.number}" if self.number > 1 else "")

    @property
    def module(self) -> str:
        """The Python module of the file."""
        return self.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    def source(self) -> str:
        """The file with the edit."""
        data = (SOURCE / self.path).read_bytes()
        return (data[: self.begin] + self.new.encode() + data[self.end :]).decode()

    def undone(self) -> Mutant:
        """The file as it is, in the place of itself."""
        return replace(self, what="nothing", end=self.begin, new="")


@dataclass(frozen=True)
class Edit:
    """An edit before it has a name: a node, what to put in its place, and why; whether it drops a term."""

    node: ast.AST
    new: str
    kind: str
    about: ast.AST | None = None
    is_term: bool = False


@dataclass(frozen=True)
class Scope:
    """A function or class: its dotted name, and the lines of a function's body."""

    name: str = ""
    lines: tuple[int, int] = (0, 0)


class File:
    """A source file, its tree, and where things are in it."""

    def __init__(self, path: str, source: bytes | None = None) -> None:
        self.path = path
        self.data = (SOURCE / path).read_bytes() if source is None else source
        self.tree = ast.parse(self.data)
        starts = [0]
        for line in self.data.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self._starts = starts

    def span(self, node: ast.AST) -> tuple[int, int]:
        """First byte of a node and the one behind its last."""
        begin = self._starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        end = self._starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
        return begin, end

    def text(self, node: ast.AST) -> str:
        """A node as it is written."""
        begin, end = self.span(node)
        return self.data[begin:end].decode()

    def scopes(self) -> Iterator[tuple[Scope, ast.AST]]:
        """Every node with the function or class around it; a function or class is around itself."""
        waiting: list[tuple[Scope, ast.AST]] = [(Scope(), self.tree)]
        while waiting:
            scope, node = waiting.pop()
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                name = f"{scope.name}.{node.name}" if scope.name else node.name
                lines = (node.body[0].lineno, node.end_lineno or 0)
                scope = Scope(name, lines if isinstance(node, ast.FunctionDef) else (0, 0))
            yield scope, node
            waiting += [(scope, child) for child in ast.iter_child_nodes(node)]

    def mutants(self, edits: Iterable[tuple[Scope, Edit]]) -> list[Mutant]:
        """Edits (scope, edit) as mutants in the order of the file, each with a name of its own."""
        found = []
        for scope, edit in edits:
            begin, end = self.span(edit.node)
            about = " ".join(self.text(edit.about or edit.node).split())
            line = edit.node.lineno  # type: ignore[attr-defined]
            what = f"{edit.kind} `{about}`"
            found.append(Mutant(self.path, line, scope.name, what, begin, end, edit.new, scope.lines))
        found.sort(key=lambda mutant: (mutant.begin, mutant.end, mutant.what, mutant.new))
        counts: dict[tuple[str, str], int] = {}
        result = []
        for mutant in dict.fromkeys(found):
            key = (mutant.scope, mutant.what)
            counts[key] = counts.get(key, 0) + 1
            fields = {**vars(mutant), "number": counts[key]}
            result.append(Mutant(**fields))
        return result
