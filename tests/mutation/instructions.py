"""Guards in the assembly that Python strings hold: branches, limits, choices, waits, cleared accumulators."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mutation.mutant import Edit, File, Scope

MAIN = ("brz", "brnz", "brneg", "brpos", "min", "max", "movz", "movnz", "sync 2")
"""Instructions of the main pipeline that guard. Loops (`brnzdec`, `rpt`) are work."""
AUX = ("f16v4min", "f16v4max ", "f32v2min", "uput $FP_CLR", "and64", "f16v4cmpgt")
"""Of the auxiliary one."""
_MAIN = re.compile("|".join(f"{re.escape(name)}\\b" for name in MAIN))
_AUX = re.compile("|".join(re.escape(name) for name in AUX))


def instruction_edits(file: File) -> Iterator[tuple[Scope, Edit]]:
    """(scope, edit) of every such instruction: in its place one that does nothing in the same slot."""
    for scope, node in file.scopes():
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        elif isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant):
            text = str(node.values[0].value)
        else:
            continue
        if " " not in text or "\n" in text:
            continue
        if _MAIN.match(text):
            yield scope, Edit(node, _instead(file.text(node)), "no instruction", node)
        elif _AUX.match(text):
            yield scope, Edit(node, '"fnop"', "no instruction", node)


def _instead(written: str) -> str:
    """`nop`, or a move of the first source for a limit."""
    quote = written.index('"')
    prefix, mnemonic, operands = written[:quote], *written[quote + 1 : -1].split(" ", 1)
    if mnemonic not in ("min", "max"):
        return '"nop"'
    target, source, _ = (part.strip() for part in operands.split(","))
    return '"nop"' if target == source else f'{prefix}"mov {target}, {source}"'
