"""Conditions of kernel contracts: every alignment, region, limit and pair of operands, each taken away."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mutation.mutant import Edit, File, Scope

ANY_LEAST, ANY_MOST = "-(1 << 60)", "1 << 60"
SCALAR = {"minimum": (2, ANY_LEAST), "maximum": (3, ANY_MOST), "multiple": (4, "1")}
"""Limits of a `Scalar`: position, and a value that limits nothing."""
OPERAND = {"alignment": "1", "interleaved": "False", "prefers_interleaved": "False", "access_tail": "0"}
"""Conditions of an `Operand`, and values that ask for nothing."""
PAIRS = ("apart", "apart_in_standard", "faster_apart")


def contract_edits(file: File) -> Iterator[tuple[Scope, Edit]]:
    """(scope, edit) of every condition in calls of `Operand`, `Scalar` and `Contract`."""
    for scope, node in file.scopes():
        match node:
            case ast.Call(func=ast.Name(id="Operand")) if not _is_unused(node):
                for edit in _operand(file, node):
                    yield scope, edit
            case ast.Call(func=ast.Name(id="Scalar")):
                for edit in _scalar(file, node):
                    yield scope, edit
            case ast.Call(func=ast.Name(id="Contract"), keywords=keywords):
                for keyword in keywords:
                    if keyword.arg in PAIRS:
                        for edit in _pairs(file, keyword.value):
                            yield scope, edit


def _is_unused(call: ast.Call) -> bool:
    return len(call.args) > 2 and isinstance(call.args[2], ast.Constant) and call.args[2].value == "unused"


def _operand(file: File, call: ast.Call) -> Iterator[Edit]:
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    for name, nothing in OPERAND.items():
        if name in given:
            yield Edit(given[name], nothing, f"no {name} in", call)
        elif name == "alignment":
            yield _added(file, call, name, nothing)


def _scalar(file: File, call: ast.Call) -> Iterator[Edit]:
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    for name, (position, nothing) in SCALAR.items():
        if name in given:
            yield Edit(given[name], nothing, f"no {name} in", call)
        elif len(call.args) > position:
            yield Edit(call.args[position], nothing, f"no {name} in", call)
        elif name != "multiple":
            yield _added(file, call, name, nothing)


def _added(file: File, call: ast.Call, name: str, value: str) -> Edit:
    text = file.text(call).rstrip()
    return Edit(call, f"{text[:-1].rstrip().removesuffix(',')}, {name}={value})", f"no {name} in", call)


def _pairs(file: File, value: ast.expr) -> Iterator[Edit]:
    if isinstance(value, ast.Tuple):
        for pair in value.elts:
            rest = [f"{file.text(other)}, " for other in value.elts if other is not pair]
            yield Edit(value, f"({''.join(rest)})", "may share elements:", pair)
    else:
        yield Edit(value, "()", "may share elements:", value)
